"""A layer of Gaussian processes."""

from __future__ import annotations

import equinox as eqx

from ..errors import InputError
from ..inducing import AbstractInducing
from ..kernels import AbstractKernel
from ..means import AbstractMean, Zero


class GPLayer(eqx.Module):
    """The prior of one layer: P independent outputs with a kernel, a mean and inducing variables.

    The kernel is shared by all outputs, or its parameters have a leading axis P. `inducing` may be None for
    exact inference. A layer holds no posterior and no number of rows.
    """

    kernel: AbstractKernel
    num_outputs: int = eqx.field(static=True, default=1)
    mean: AbstractMean = eqx.field(default_factory=Zero)
    inducing: AbstractInducing | None = None

    def __check_init__(self):
        if self.num_outputs < 1:
            raise InputError(f"GPLayer(num_outputs=...) must be at least 1; got {self.num_outputs}.")
