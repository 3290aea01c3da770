"""Layers: priors over functions."""

from ._gp import GPLayer as GPLayer
