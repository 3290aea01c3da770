"""Plots, each one call on a matplotlib axis. matplotlib is imported when the first one is drawn."""

from ._calibration import calibration as calibration
from ._calibration import ranks as ranks
from ._covariance import covariance_blocks as covariance_blocks
from ._effects import main_effect as main_effect
from ._effects import pair_effect as pair_effect
from ._function import function as function
from ._layers import layers as layers
from ._layers import variance_curvature as variance_curvature
from ._predictions import intervals as intervals
from ._predictions import predictions as predictions
from ._training import training as training
from ._uncertainty import error_by_variance as error_by_variance
from ._uncertainty import variance_by_distance as variance_by_distance
