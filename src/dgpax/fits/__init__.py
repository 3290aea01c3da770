"""What inference leaves: one contract, which predictions, reports, files and estimators are written on."""

from ._base import NUM_FEATURES as NUM_FEATURES
from ._base import AbstractFit as AbstractFit
from ._fit import Fit as Fit
from ._latent import Functions as Functions
from ._latent import latent as latent
from ._pathwise import FunctionDraws as FunctionDraws
from ._pathwise import PriorDraws as PriorDraws
from ._report import FitReport as FitReport
