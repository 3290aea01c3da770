"""Which inputs matter: Sobol' indices and effects of functions drawn from any fit."""

from ._sobol import PairEffect as PairEffect
from ._sobol import Sensitivity as Sensitivity
from ._sobol import pair_effect as pair_effect
from ._sobol import sobol_indices as sobol_indices
