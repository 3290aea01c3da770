"""Variational inference: the model and a posterior family are trained together."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx

from ..errors import InputError
from ..model import DeepGP
from ..objectives import elbo
from ..parameters import cast
from ..posteriors import AbstractPosterior, MeanField
from ._base import AbstractMethod
from ._natural import NaturalGradient


class ModelAndPosterior(NamedTuple):
    """What variational inference trains."""

    model: DeepGP
    posterior: AbstractPosterior


class Variational(AbstractMethod):
    """Maximises the ELBO over the model and a posterior; the posterior starts at the prior unless one is given.

    `num_samples` draws of the inner layers per step; a model with one layer needs none.
    """

    posterior: AbstractPosterior | None = None
    num_samples: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        if self.num_samples < 1:
            raise InputError(f"Variational(num_samples=...) must be at least 1; got {self.num_samples}.")

    @property
    def warm_up(self):
        return ()

    def target(self, model, data):
        posterior = MeanField.at_prior(model.layers) if self.posterior is None else self.posterior
        return ModelAndPosterior(model, cast(posterior, data.x.dtype))

    def objective(self, target, data, key):
        return elbo(target.model, target.posterior, data, key=key, num_samples=self.num_samples)

    def finish(self, target, data):
        return target.model, target.posterior

    def default_engine(self):
        return NaturalGradient()
