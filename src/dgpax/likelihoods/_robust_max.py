"""The class with the largest latent function, but for labelling errors."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import ndtr

from ..distributions import Gaussian, GaussianOverOutputs
from ..errors import InputError
from ..linalg import einsum, even_normals, matmul, safe_cholesky
from ..typing import Array, Float
from ._base import AnyGaussian
from ._dependent import NUM_POINTS, over_points
from ._gaussian import log_normal
from ._integrals import grid, positive
from ._multiclass import AbstractMulticlass, check_num_classes
from ._normal import log_ndtr


class RobustMax(AbstractMulticlass):
    """p(y | f) = 1 − ε if f_y is the largest, else ε/(C − 1)   [Hernández-Lobato et al. 2011].

    Under independent q(f_c) everything follows from P(f_c is the largest), one integral over a product of normal
    cdfs. With `num_points` = 48 its error is below 1e-6 as long as the standard deviations of the classes differ
    less than sixfold; it is 1e-4 when they differ tenfold and 0.04 when they differ twentyfold. Where the f_c depend on
    each other it is an average over 256 evenly spread lines through the space of f: exact for two classes, within
    1e-3 for three or four and 1e-2 for ten.
    """

    num_classes: int = eqx.field(static=True)
    epsilon: float = eqx.field(static=True, default=1e-3)
    num_points: int = eqx.field(static=True, default=48)

    def __check_init__(self):
        check_num_classes("RobustMax", self.num_classes)
        if not 0.0 < self.epsilon < 1.0:
            raise InputError(f"RobustMax needs a labelling error strictly between 0 and 1; got epsilon={self.epsilon}.")

    def log_probabilities(self, f: Float[Array, "*batch N C"]) -> Float[Array, "*batch N C"]:
        largest = jnp.argmax(f, axis=-1, keepdims=True) == jnp.arange(self.num_classes)
        right, wrong = self._log_levels(f)
        return jnp.where(largest, right, wrong)

    def expected_log_probabilities(self, q: AnyGaussian) -> Float[Array, "*batch N C"]:
        largest = self._probability_largest(q)
        right, wrong = self._log_levels(q.mean)
        return largest * right + (1.0 - largest) * wrong

    def class_probabilities(self, q: AnyGaussian) -> Float[Array, "*batch N C"]:
        largest = self._probability_largest(q)
        return (1.0 - self.epsilon) * largest + self.epsilon / (self.num_classes - 1) * (1.0 - largest)

    def _log_levels(self, like: Float[Array, "..."]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        levels = jnp.asarray([1.0 - self.epsilon, self.epsilon / (self.num_classes - 1)], like.dtype)
        right, wrong = jnp.log(levels)
        return right, wrong

    def _probability_largest(self, q: AnyGaussian) -> Float[Array, "*batch N C"]:
        """P(f_c > f_j for all j ≠ c), set to sum to 1."""
        each = _largest_together(q) if isinstance(q, GaussianOverOutputs) else self._largest_of_independent(q)
        return each / jnp.sum(each, axis=-1, keepdims=True)

    def _largest_of_independent(self, q: Gaussian) -> Float[Array, "*batch N C"]:
        """∫ N(x; m_c, v_c) Π_{j≠c} Φ((x − m_j)/√v_j) dx up to a factor, for all c on one grid of x, which holds the
        maximum of the f_c but for a probability of 1e-9."""
        mean, variance = q.mean, positive(q.variance)
        stddev = jnp.sqrt(variance)
        low = jnp.max(mean - 6.0 * stddev, axis=-1, keepdims=True)
        high = jnp.max(mean + 6.0 * stddev, axis=-1, keepdims=True)

        @jax.checkpoint
        def integrand(x):
            log_cdf = log_ndtr((x - mean) / stddev)
            others = jnp.sum(log_cdf, axis=-1, keepdims=True) - log_cdf
            return jnp.exp(log_normal(x - mean, variance) + others)

        return jnp.sum(lax.map(integrand, grid(low, high, self.num_points)), axis=0)


def _largest_together(q: GaussianOverOutputs) -> Float[Array, "*batch N C"]:
    """For each c, the mean over lines f = start + t·direction_c, t ~ N(0, 1), of P(f_c is the largest): on a line that
    is an interval of t, whose ends are smooth in the parameters.

    Along its line f_c gains on all others at once, in standard deviations of their difference, so that no end moves
    fast. Only differences between the functions matter: one dimension less. Directions are held fixed in derivatives,
    since the integral doesn't depend on them.
    """
    size, dtype = q.mean.shape[-1], q.mean.dtype
    contrasts = jnp.asarray(np.linalg.qr(np.eye(size)[:, 1:] - 1.0 / size)[0], dtype)
    root = matmul(contrasts, safe_cholesky(matmul(matmul(contrasts.T, q.covariance), contrasts)).factor)
    lead = root[..., :, None, :] - root[..., None, :, :]
    direction = _unit(jnp.sum(_unit(lax.stop_gradient(lead)), axis=-2))
    direction = jnp.where(direction[..., :1] > 0.0, -direction, direction)
    axis = jnp.eye(1, size - 1, dtype=dtype)[0]
    mirror = _unit(direction - axis)  # a reflection takes the first axis to the direction, which is far from it
    steeper, across = (einsum("...cjk,...ck->...cj", lead, part) for part in (direction, mirror))
    rising, falling = steeper > 0, steeper < 0

    def on_line(z):
        z = jnp.concatenate([jnp.zeros(1, dtype), z])
        f = q.mean + einsum("...ck,k->...c", root, z)
        moved = 2.0 * einsum("...ck,k->...c", mirror, z)
        ahead = f[..., :, None] - f[..., None, :] - moved[..., None] * across
        crossing = -ahead / jnp.where(rising | falling, steeper, 1.0)
        start = jnp.max(jnp.where(rising, crossing, -jnp.inf), axis=-1)
        end = jnp.min(jnp.where(falling, crossing, jnp.inf), axis=-1)
        possible = (start < end) & jnp.all(rising | falling | (ahead >= 0), axis=-1)
        return jnp.where(possible, ndtr(end) - ndtr(start), 0.0)

    if size == 2:
        return on_line(jnp.zeros(0, dtype))
    return jnp.mean(over_points(on_line, jnp.asarray(even_normals(NUM_POINTS, size - 2), dtype)), axis=0)


def _unit(vector: Float[Array, "*shape K"]) -> Float[Array, "*shape K"]:
    """Of length 1, or 0 where it is 0."""
    length = jnp.linalg.norm(vector, axis=-1, keepdims=True)
    return vector / jnp.where(length > 0.0, length, 1.0)
