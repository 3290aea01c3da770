"""The one forward pass, and the distribution of a layer by itself.

A layer's output has four covariances [FRAMEWORK, Table 2]: of every number by itself (`layer_marginal`), across the
rows (`layer_over_inputs`), across the outputs (`layer_over_outputs`), and across both (`layer_over_both`).
"""

from ._base import AbstractOutputs as AbstractOutputs
from ._forward import beside as beside
from ._forward import layer_inputs as layer_inputs
from ._forward import propagate as propagate
from ._layer import as_gp as as_gp
from ._layer import layer_outputs as layer_outputs
from ._noise import Noise as Noise
from ._noise import draw_noise as draw_noise
from ._noise import even_noise as even_noise
from ._noise import for_rows as for_rows
