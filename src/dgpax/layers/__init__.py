"""Layers: priors over functions."""

from ._base import AbstractLayer as AbstractLayer
from ._base import Draw as Draw
from ._base import Given as Given
from ._base import beside as beside
from ._gp import GPLayer as GPLayer
from ._inputs import Append as Append
from ._inputs import LatentVariables as LatentVariables
from ._kinds import Layers as Layers
from ._kinds import gp_layers as gp_layers
from ._kinds import last_gp as last_gp
from ._kinds import latent_layers as latent_layers
from ._kinds import refuse_latents as refuse_latents
