"""Variational inference for inputs that were measured with errors."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from ..data import Dataset
from ..distributions import Gaussian
from ..errors import InputError
from ..model import DeepGP
from ..objectives import sampled_uncertain_elbo, standard_kl, uncertain_elbo
from ..posteriors import AbstractPosterior, RowLatents
from ..typing import Array, Float
from ..uncertain import as_input_variance, input_variance_to_model_units
from ._base import AbstractMethod
from ._variational import Variational


class ModelAndInputs(NamedTuple):
    """What is trained: the model, its posterior, and the errors w of the inputs in units of their deviation."""

    model: DeepGP
    posterior: AbstractPosterior
    errors: RowLatents


class NoisyInputs(AbstractMethod):
    """As Variational, for inputs that were measured with Gaussian errors of known variance.

    The true inputs are x_n + √variance · w_n with w_n ~ N(0, I), and q(w_n) is learnt for every row [Damianou et al.
    2016]: where the function is steep, y tells where the input was. `input_variance` is in raw units: one number,
    one per column [D], or one per entry [N, D]. Without `num_samples` in closed form, for one layer with Gaussian
    noise and kernels that have an expansion (`dgpax.expectations`); else by that many draws of the inputs, and of
    inner layers, per step.
    """

    input_variance: Float[Array, "*n"] = eqx.field(converter=jnp.asarray)
    posterior: AbstractPosterior | str = "mean-field"
    num_samples: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.num_samples is not None and self.num_samples < 1:
            raise InputError(f"NoisyInputs(num_samples=...) must be at least 1, or None; got {self.num_samples}.")

    def target(self, model, data):
        as_input_variance(self.input_variance, data.x)
        start = Variational(self.posterior).target(model, data)
        errors = RowLatents.start(data.num_rows, data.num_inputs, data.x.dtype)
        return ModelAndInputs(start.model, start.posterior, errors)

    def terms(self, target, data, key):
        w = target.errors(data)
        stddev = jnp.sqrt(self._variance(target.model, data))
        x = Gaussian(data.x + stddev * w.mean, stddev**2 * w.variance)
        kl = jnp.sum(data.weighted(jnp.sum(standard_kl(w), axis=-1)))
        if self.num_samples is None:
            return uncertain_elbo(target.model, target.posterior, data, x, input_kl=kl)
        return sampled_uncertain_elbo(
            target.model, target.posterior, data, x, key=key, input_kl=kl, num_samples=self.num_samples
        )

    def default_engine(self):
        return Variational().default_engine()

    def _variance(self, model: DeepGP, batch: Dataset) -> Float[Array, "N D"]:
        variance = self.input_variance.astype(batch.x.dtype)
        per_row = variance[batch.row_numbers()] if variance.ndim == 2 else jnp.broadcast_to(variance, batch.x.shape)
        return input_variance_to_model_units(model, per_row)
