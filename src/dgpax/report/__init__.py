"""Reports: one self-contained HTML file about a fit, for people who want to know whether to trust it.

`write` makes the file and `page` its text; `judgement` is what a fit says about rows that it hadn't seen, and
`verdict` whether that can be believed; `describe_numbers` and `describe_categories` tell it about columns of a
table that has text and gaps.
"""

from ._columns import ColumnSummary as ColumnSummary
from ._columns import describe_categories as describe_categories
from ._columns import describe_numbers as describe_numbers
from ._honesty import Honesty as Honesty
from ._honesty import honesty as honesty
from ._judge import Classification as Classification
from ._judge import Regression as Regression
from ._judge import judge_distribution as judge_distribution
from ._judge import scores as scores
from ._judgement import Judgement as Judgement
from ._judgement import judgement as judgement
from ._judgement import pooled as pooled
from ._page import page as page
from ._page import verdict as verdict
from ._page import write as write
from ._study import write_study as write_study
