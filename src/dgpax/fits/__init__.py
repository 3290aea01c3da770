"""What inference leaves: one contract, which predictions, reports, files and estimators are written on."""

from ._base import NUM_FEATURES as NUM_FEATURES
from ._base import AbstractFit as AbstractFit
from ._base import require_fit as require_fit
from ._ensemble import Ensemble as Ensemble
from ._ensemble import in_units_of as in_units_of
from ._ensemble import pooled as pooled
from ._ensemble import shares as shares
from ._fit import Fit as Fit
from ._fit import with_posterior as with_posterior
from ._latent import Functions as Functions
from ._latent import latent as latent
from ._pathwise import FunctionDraws as FunctionDraws
from ._pathwise import PriorDraws as PriorDraws
from ._report import FitReport as FitReport
