"""The one walk through the layers, the forward pass, and the outputs of a layer by itself.

A layer's output has four covariances [FRAMEWORK, Table 2]: of every number by itself (`marginal`), across the rows
(`over_inputs`), across the outputs (`over_outputs`), and across both (`over_both`).
"""

from ._base import AbstractOutputs as AbstractOutputs
from ._base import At as At
from ._base import outputs as outputs
from ._base import outputs_of as outputs_of
from ._forward import Draws as Draws
from ._forward import propagate as propagate
from ._independent import IndependentOutputs as IndependentOutputs
from ._noise import Noise as Noise
from ._noise import draw_noise as draw_noise
from ._noise import even_noise as even_noise
from ._noise import even_normals as even_normals
from ._noise import for_rows as for_rows
from ._patches import PatchOutputs as PatchOutputs
from ._shared import SharedOutputs as SharedOutputs
from ._walk import input_widths as input_widths
from ._walk import walk as walk
