"""Dispatch tables for pairs of (inducing variable, kernel)."""

from . import _drawn as _drawn
from . import _fourier as _fourier
from . import _functionals as _functionals
from . import _multioutput as _multioutput
from . import _multiscale as _multiscale
from . import _patches as _patches
from ._fourier import refuse_uncovered as refuse_uncovered
from ._processes import IndependentProcesses as IndependentProcesses
from ._processes import PatchProcesses as PatchProcesses
from ._processes import Processes as Processes
from ._processes import SharedProcesses as SharedProcesses
from ._processes import processes as processes
from ._processes import variables as variables
from ._rules import Kuf as Kuf
from ._rules import Kuu as Kuu
from ._table import RuleTable as RuleTable
