"""Tables in files, read as a person would read them, with a note wherever there was something to decide.

From the bytes to text (`_text`), to lines and cells (`_rows`, `_frame_of_lines`), to columns (`_columns`), whose cells
are gaps, numbers, dates, times or words.
"""

from ._read import SUFFIXES as SUFFIXES
from ._read import is_table as is_table
from ._read import read_table as read_table
from ._table import Table as Table
from ._table import TableColumn as TableColumn
from ._written import Wishes as Wishes
from ._written import Written as Written
