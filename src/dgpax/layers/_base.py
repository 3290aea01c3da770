"""What can stand in a model's list of layers."""

from __future__ import annotations

import equinox as eqx


class AbstractLayer(eqx.Module):
    """A step from inputs to outputs, row by row. It holds a prior, never a posterior."""
