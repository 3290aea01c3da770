"""Warped time series: sequences as functions of time that runs unevenly.

`align` finds warps of time under which several sequences are one function, `fit_warped` one under which a sequence is
stationary. Both say not one solution but what warps and functions leave open together.
"""

from ._bound import warped_elbo as warped_elbo
from ._draws import WarpedDraws as WarpedDraws
from ._draws import pairwise_distance as pairwise_distance
from ._fit import WarpedFit as WarpedFit
from ._fit import WarpedReport as WarpedReport
from ._fit import align as align
from ._fit import default_engine as default_engine
from ._fit import default_warp as default_warp
from ._fit import fit_warped as fit_warped
from ._model import WarpedModel as WarpedModel
from ._posterior import AbstractWarpedPosterior as AbstractWarpedPosterior
from ._posterior import DrawnLocations as DrawnLocations
from ._posterior import FixedLocations as FixedLocations
from ._posterior import WarpOutputs as WarpOutputs
from ._sequences import Sequences as Sequences
from ._sequences import Units as Units
