"""Trainable values: stored unconstrained, read through `.value`, frozen and listed by path.

A plain array or Python number inside a model is a constant. What is to be trained is a parameter:
`Real`, `Positive`, `Bounded` or `LowerTriangular`.
"""

from ._base import AbstractParameter as AbstractParameter
from ._constraints import Bounded as Bounded
from ._constraints import LowerTriangular as LowerTriangular
from ._constraints import Positive as Positive
from ._constraints import Real as Real
from ._constraints import as_lower_triangular as as_lower_triangular
from ._constraints import as_positive as as_positive
from ._constraints import as_real as as_real
from ._constraints import fixed as fixed
from ._priors import AbstractPrior as AbstractPrior
from ._priors import GammaPrior as GammaPrior
from ._priors import HalfNormalPrior as HalfNormalPrior
from ._priors import LogNormalPrior as LogNormalPrior
from ._priors import NormalPrior as NormalPrior
from ._shown import counted as counted
from ._shown import html_table as html_table
from ._shown import on_one_line as on_one_line
from ._table import COLUMNS as COLUMNS
from ._table import table as table
from ._tree import at_free_values as at_free_values
from ._tree import cast as cast
from ._tree import combine as combine
from ._tree import find as find
from ._tree import free_values as free_values
from ._tree import freeze as freeze
from ._tree import log_jacobian as log_jacobian
from ._tree import log_prior as log_prior
from ._tree import matches as matches
from ._tree import partition as partition
from ._tree import sample_priors as sample_priors
from ._tree import set_prior as set_prior
from ._tree import set_values as set_values
from ._tree import unfreeze as unfreeze
from ._tree import with_weak_priors as with_weak_priors
