"""Scores of predictions. Each is an average over rows and outputs that leaves out missing (NaN) targets.

Regression scores take the targets [N, P] and a predictive distribution (point scores also an array of predictions);
classification scores take the labels and the probabilities of the classes.
"""

from ._calibration import calibration_curve as calibration_curve
from ._calibration import calibration_error as calibration_error
from ._calibration import chance_band as chance_band
from ._calibration import coverage as coverage
from ._calibration import curve_of_ranks as curve_of_ranks
from ._calibration import error_of_ranks as error_of_ranks
from ._calibration import mean_width as mean_width
from ._calibration import pit as pit
from ._classification import accuracy as accuracy
from ._classification import auc as auc
from ._classification import brier as brier
from ._classification import log_loss as log_loss
from ._regression import crps as crps
from ._regression import mae as mae
from ._regression import mnll_stride as mnll_stride
from ._regression import nlpd as nlpd
from ._regression import rmse as rmse
from ._regression import smse as smse
from ._report import regression_report as regression_report
from ._stacking import stacking_weights as stacking_weights
