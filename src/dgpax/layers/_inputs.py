"""Layers that widen the inputs of the layers behind them."""

from __future__ import annotations

import equinox as eqx

from ..errors import InputError
from ._base import AbstractLayer, beside


class Append(AbstractLayer):
    """Puts something from further ahead beside what comes in: the model's "inputs", so that depth can't lose them
    [Duvenaud et al. 2014], or what the layer of some number made."""

    source: str | int = eqx.field(static=True, default="inputs")

    def apply(self, given, draw):
        return beside(given.last, given.of(self.source))


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

    def apply(self, given, draw):
        return beside(given.last, draw(given.last))

    @property
    def random(self):
        return self

    @property
    def num_draws(self) -> int:
        """How many standard normal numbers a row takes."""
        return self.num_latents
