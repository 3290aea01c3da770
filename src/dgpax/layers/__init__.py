"""Layers: priors over functions."""

from ._base import AbstractLayer as AbstractLayer
from ._gp import GPLayer as GPLayer
from ._inputs import AppendInputs as AppendInputs
from ._inputs import LatentVariables as LatentVariables
