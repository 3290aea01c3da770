"""Layers that widen the inputs of the layers behind them."""

from __future__ import annotations

import equinox as eqx

from ..errors import InputError
from ._base import AbstractLayer


class AppendInputs(AbstractLayer):
    """Puts the model's inputs beside what comes in: (f, x), so that depth can't lose them [Duvenaud et al. 2014]."""


class LatentVariables(AbstractLayer):
    """Puts latent inputs w_n ~ N(0, I) beside what comes in, a set per row [Salimbeni et al. 2019, section 3].

    They let a model have densities that are not Gaussian given x; alone in front of a GP layer they are the inputs of
    a Bayesian GP-LVM. What is believed about the w_n of the training rows is part of the posterior; new rows have the
    prior.
    """

    num_latents: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        if self.num_latents < 1:
            raise InputError(f"LatentVariables(num_latents=...) must be at least 1; got {self.num_latents}.")
