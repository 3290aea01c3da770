"""The softmax of the latent functions."""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import logsumexp

from ..distributions import GaussianOverOutputs
from ..typing import Array, Float
from ._base import AnyGaussian
from ._dependent import expectation
from ._integrals import grid, nodes, positive
from ._multiclass import AbstractMulticlass, check_num_classes


class Softmax(AbstractMulticlass):
    """p(y = c | f) = exp(f_c)/Σ_j exp(f_j).

    Under independent f_c the expectations equal those of the product Gauss-Hermite rule with `quadrature_order`^C
    nodes, at the cost of order · C · `num_points`; nothing is sampled. Their error is 1e-6 at variances of 1, 1e-4 at 4
    and 1e-2 at 25. Where the f_c depend on each other they are sums over at most 256 points, by a product rule of up
    to five classes and averages for more: 1e-3 at variances of 1, 1e-2 at 4.
    """

    num_classes: int = eqx.field(static=True)
    quadrature_order: int = eqx.field(static=True, default=16)
    num_points: int = eqx.field(static=True, default=48)

    def __check_init__(self):
        check_num_classes("Softmax", self.num_classes)

    def log_probabilities(self, f: Float[Array, "*batch N C"]) -> Float[Array, "*batch N C"]:
        return jax.nn.log_softmax(f, axis=-1)

    def expected_log_probabilities(self, q: AnyGaussian) -> Float[Array, "*batch N C"]:
        """E f_c − E[log Σ_j exp(f_j)]."""
        if isinstance(q, GaussianOverOutputs):
            return q.mean - expectation(partial(logsumexp, axis=-1), q)[..., None]
        return q.mean - self._expected_logsumexp(q.mean, positive(q.variance))[..., None]

    def class_probabilities(self, q: AnyGaussian) -> Float[Array, "*batch N C"]:
        """E[softmax_c(f)] = ∂/∂mean_c E[log Σ_j exp(f_j)], set to sum to 1."""
        if isinstance(q, GaussianOverOutputs):
            return expectation(jax.nn.softmax, q)
        variance = positive(q.variance)
        probability = jax.grad(lambda mean: jnp.sum(self._expected_logsumexp(mean, variance)))(q.mean)
        return probability / jnp.sum(probability, axis=-1, keepdims=True)

    def _expected_logsumexp(
        self, mean: Float[Array, "*batch N C"], variance: Float[Array, "*batch N C"]
    ) -> Float[Array, "*batch N"]:
        """E[log Σ_c exp(f_c)] = E[max_c (f_c + g_c)] − γ with independent standard Gumbel g_c and Euler's γ.

        Given f, the maximum is Gumbel with location log Σ exp(f_c) [Gumbel 1954; Maddison et al. 2014]. As the f_c
        are independent too, its cdf is F(x) = Π_c E[exp(−exp(f_c − x))], and E[max] = high − ∫ F up to `high`,
        beyond which F is 1.
        """
        stddev = jnp.sqrt(variance)
        low = jnp.max(mean - 4.5 * stddev, axis=-1) - 3.5
        high = jnp.max(mean + 4.5 * stddev, axis=-1) + 14.0 + float(np.log(self.num_classes))
        x = grid(low, high, self.num_points)
        f, log_weights = nodes(mean, stddev, self.quadrature_order)
        weights = jnp.exp(log_weights)

        @jax.checkpoint
        def cdf(x):
            hazard = jnp.exp(jnp.minimum(f - x[..., None], 50.0))
            cdfs = jnp.sum(weights * jnp.exp(-hazard), axis=0)
            return jnp.exp(jnp.sum(jnp.log(cdfs), axis=-1))

        return x[-1] - jnp.trapezoid(lax.map(cdf, x), x, axis=0) - float(np.euler_gamma)
