"""Variational inference for latent inputs of one GP layer, without samples."""

from __future__ import annotations

import equinox as eqx

from ..objectives import latent_elbo
from ..posteriors import AbstractPosterior
from ._base import AbstractMethod
from ._variational import Variational


class LatentInputs(AbstractMethod):
    """As Variational, for latent variables in front of one GP layer with Gaussian noise, in closed form.

    There is no sampling noise in the objective. For kernels that have an expansion (`dgpax.expectations`).
    """

    posterior: AbstractPosterior | str = "mean-field"
    latents: str = eqx.field(static=True, default="rows")

    def target(self, model, data):
        return Variational(self.posterior, latents=self.latents).target(model, data)

    def terms(self, target, data, key):
        return latent_elbo(target.model, target.posterior, data)

    def default_engine(self):
        return Variational().default_engine()
