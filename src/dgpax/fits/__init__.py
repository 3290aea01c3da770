"""What inference leaves: one contract, which predictions, reports, files and estimators are written on."""

from ._base import AbstractFit as AbstractFit
from ._fit import Fit as Fit
from ._report import FitReport as FitReport
