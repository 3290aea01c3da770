"""What `fit` leaves of a model of layers."""

from __future__ import annotations

import equinox as eqx
import jax.random as jr

from ..errors import InputError
from ..layers import refuse_latents
from ..model import DeepGP
from ..posteriors import AbstractPosterior
from ._base import NUM_FEATURES, AbstractFit
from ._latent import function_draws, latent
from ._pathwise import FunctionDraws, layer_functions
from ._report import FitReport


class Fit(AbstractFit):
    """A fitted model: the prior at its trained values, the posterior, and what happened.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    >>> fitted.num_inputs, fitted.report.num_rows
    (1, 20)
    >>> noise_variance = float(fitted.model.likelihood.noise_variance.value)
    """

    model: DeepGP
    posterior: AbstractPosterior
    report: FitReport = eqx.field(static=True)
    num_inputs: int = eqx.field(static=True)
    input_names: tuple[str, ...] = eqx.field(static=True)

    def latent(self, x, *, num_samples, seed):
        return latent(self.model, self.posterior, x, num_samples=num_samples, seed=seed)

    def latent_jointly(self, x, over, *, num_samples, seed):
        return latent(self.model, self.posterior, x, num_samples=num_samples, seed=seed, over=over)

    def draws(self, x, num_draws, *, seed):
        refuse_latents(self.model.layers, "A draw")
        return function_draws(self.model, self.posterior, x, jr.key(seed), num_draws)

    def functions(self, num_draws, *, seed, num_features=NUM_FEATURES):
        drawn = layer_functions(self.model, self.posterior, num_draws, num_features, seed)
        return FunctionDraws(drawn, self.model, self.num_inputs, self.input_names)


def with_posterior(fitted: AbstractFit, what: str) -> Fit:
    """The fit, if it believes something about every layer by itself."""
    if not isinstance(fitted, Fit):
        raise InputError(f"{what} is for a Fit, whose posterior is of all layers; got {type(fitted).__name__}.")
    return fitted
