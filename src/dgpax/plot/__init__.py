"""Plots, each one call on a matplotlib axis. matplotlib is imported when the first one is drawn."""

from ._calibration import calibration as calibration
from ._function import function as function
from ._predictions import predictions as predictions
from ._training import training as training
