"""The one forward pass, for training, prediction and every posterior family."""

from __future__ import annotations

import jax.random as jr

from .conditional import project, project_jointly
from .distributions import Gaussian, GaussianOverInputs
from .layers import GPLayer
from .posteriors import AbstractPosterior, Carry
from .typing import Array, Float, RandomKey


def propagate(
    layers: tuple[GPLayer, ...],
    posterior: AbstractPosterior,
    x: Float[Array, "*b N D"],
    carry: Carry,
    *,
    key: RandomKey | None = None,
) -> Gaussian:
    """q(f_L(x)) given one draw of the inner layers per leading axis of x [DSVI, eqs. 13-14].

    Each layer is sampled at every row by itself. A model with one layer needs no key.
    """
    for index, layer in enumerate(layers[:-1]):
        q = _layer_marginal(index, layer, posterior, x, carry)
        noise = jr.normal(jr.fold_in(_required(key), index), q.mean.shape, q.mean.dtype)
        x = q.mean + q.stddev * noise
    return _layer_marginal(len(layers) - 1, layers[-1], posterior, x, carry)


def layer_joint(
    index: int, layer: GPLayer, posterior: AbstractPosterior, x: Float[Array, "*b N D"], carry: Carry
) -> GaussianOverInputs:
    """q(f_l(x)) with the covariance between the rows."""
    projection = project_jointly(layer.kernel, x, posterior.inducing(index, layer), carry.roots[index])
    q = posterior.joint(index, projection, carry)
    return GaussianOverInputs(q.mean + layer.mean(x), q.covariance)


def _layer_marginal(index, layer, posterior, x, carry) -> Gaussian:
    projection = project(layer.kernel, x, posterior.inducing(index, layer), carry.roots[index])
    q = posterior.marginal(index, projection, carry)
    return Gaussian(q.mean + layer.mean(x), q.variance)


def _required(key: RandomKey | None) -> RandomKey:
    if key is None:
        raise TypeError("propagate(...) through more than one layer draws samples: pass key=jax.random.key(seed).")
    return key
