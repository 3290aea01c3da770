"""What the layers inside a deep model do."""

from __future__ import annotations

from collections.abc import Callable

import jax.random as jr

from ..distributions import Gaussian, Mixture
from ..fits import NUM_FEATURES, AbstractFit, require_fit, with_posterior
from ..layers import GPLayer
from ..model import DeepGP
from ..posteriors import AbstractPosterior
from ..programs import compiled
from ..propagate import Draws, Noise, even_noise, for_rows, outputs_of, walk
from ..typing import Array, Float, RandomKey


def predict_layers(fitted: AbstractFit, x, *, num_samples: int = 100, seed: int = 0) -> tuple[Gaussian | Mixture, ...]:
    """The distribution of every GP layer's output at the rows of x, in the model's units; the last is f itself.

    The first layer's is Gaussian, those behind it are mixtures over samples.
    """
    own, inputs = with_posterior(fitted, "predict_layers()"), fitted.inputs(x)
    num_samples = own.posterior.suitable_samples(num_samples)
    noise = even_noise(own.model.layers, num_samples, seed, inputs.dtype)
    outputs = _outputs(own.model, own.posterior, inputs, jr.key(seed), noise, num_samples)
    return tuple(q if q.mean.ndim == 2 else Mixture(q) for q in outputs)


@compiled
def _outputs(
    model: DeepGP, posterior: AbstractPosterior, x: Float[Array, "N D"], key: RandomKey, noise: Noise, num_samples: int
) -> tuple[Gaussian, ...]:
    posterior = posterior.tractable(jr.fold_in(key, len(model.layers)), (num_samples,))
    draws, last, seen = Draws(posterior, for_rows(noise, x.shape[0])), len(model.layers) - 1, []

    def visit(index, random, x, carry):
        if isinstance(random, GPLayer):
            seen.append(outputs_of(index, random, posterior, x, carry).marginal())
        return (seen[-1].mean, carry) if index == last else draws(index, random, x, carry)

    walk(model.layers, x, visit, posterior.begin(model.layers))
    return tuple(seen)


def sample_jointly(fitted: AbstractFit, x, *, num_samples: int = 10, seed: int = 0) -> Float[Array, "S N P"]:
    """Draws of f at all rows of x together, through every layer, in raw units: O(N³).

    For values at more inputs later, of the same functions, there is `draw_functions`.
    """
    require_fit(fitted, "sample_jointly")
    draws, scaling = fitted.draws(fitted.inputs(x), num_samples, seed=seed), fitted.model.scaling
    return draws if scaling is None else scaling.invert_outputs(draws)


def draw_functions(
    fitted: AbstractFit, num_draws: int = 10, *, num_features: int = NUM_FEATURES, seed: int = 0
) -> Callable[..., Float[Array, "S N P"]]:
    """Functions drawn from the posterior, through all layers, at a cost that is linear in later inputs.

    For inducing points (or exact inference), independent or linearly mixed outputs, and kernels that are sums of
    stationary ones. The prior is approximated by `num_features` random frequencies, with an error that shrinks with
    their square root and matters only where the data say little.
    """
    require_fit(fitted, "draw_functions")
    return fitted.functions(num_draws, seed=seed, num_features=num_features)
