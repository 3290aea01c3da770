"""Warped time series: sequences as functions of time that runs unevenly.

`align` finds warps of time under which several sequences are one function, `fit_warped` one under which a sequence is
stationary. Both say not one solution but what warps and functions leave open together.
"""

from ._align import align as align
from ._align import default_warp as default_warp
from ._align import fit_warped as fit_warped
from ._bound import warped_elbo as warped_elbo
from ._draws import WarpedDraws as WarpedDraws
from ._draws import pairwise_distance as pairwise_distance
from ._fit import WarpedFit as WarpedFit
from ._method import Warped as Warped
from ._method import default_engine as default_engine
from ._model import WarpedModel as WarpedModel
from ._posterior import AbstractWarpedPosterior as AbstractWarpedPosterior
from ._posterior import DrawnLocations as DrawnLocations
from ._posterior import FixedLocations as FixedLocations
from ._posterior import WarpOutputs as WarpOutputs
from ._sequences import Sequences as Sequences
