"""Moments of Gaussian bumps, and of bumps times linear functions, of a Gaussian x.

A bump tilts N(x; μ, s) into another Gaussian. With precision p around the centre c and δ = c − μ, per column,

    E[exp(−½p(x − c)²)] = (1 + sp)^(−½) exp(−½pδ²/(1 + sp)),    tilted mean μ + spδ/(1 + sp),

and two bumps, p and q around c and c', tilt it to the variance t = s/(1 + sp + sq). Covariances are computed as such,
never as a difference of moments: their error is small against the covariance, and they are exactly 0 for s = 0.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from ..distributions import Gaussian
from ..typing import Array, Float

ROWS = (..., None, slice(None), None, slice(None))
COLUMNS = (..., None, None, slice(None), slice(None))


class Bumps(eqx.Module):
    """weight_m exp(−½ Σ_d precision_md (x_d − c_md)²) for M centres c, times slope_m · x if there is a slope.

    Axes of size 1 are shared by all m; leading axes are those of the processes. Precision 0 is a constant.
    """

    weight: Float[Array, "*#q #M"]
    precision: Float[Array, "*#q #M D"]
    slope: Float[Array, "*#q M D"] | None = None


class _Tilt(NamedTuple):
    """One set of bumps under N(x; μ, s): the logarithm of its integral, δ, and the shift of the mean."""

    log_mass: Float[Array, "..."]
    offset: Float[Array, "..."]
    shift: Float[Array, "..."]


def _tilt(centre, precision, mean, variance) -> _Tilt:
    offset = centre - mean
    total = 1.0 + variance * precision
    log_mass = -0.5 * jnp.sum(jnp.log(total) + precision * offset**2 / total, axis=-1)
    return _Tilt(log_mass, offset, variance * precision * offset / total)


def expected(centre: Float[Array, "*#q M D"], bumps: Bumps, x: Gaussian) -> Float[Array, "*b M N"]:
    """E[bumps(x)] for every row of x, [..., 1, N, D] [Titsias & Lawrence 2010, Ψ1]."""
    mean, variance = x.mean[..., None, :, :], x.variance[..., None, :, :]
    tilt = _tilt(centre[..., :, None, :], bumps.precision[..., :, None, :], mean, variance)
    mass = bumps.weight[..., :, None] * jnp.exp(tilt.log_mass)
    if bumps.slope is None:
        return mass
    return mass * jnp.sum(bumps.slope[..., :, None, :] * (mean + tilt.shift), axis=-1)


def covariance(centre: Float[Array, "*#q M D"], left: Bumps, right: Bumps, x: Gaussian) -> Float[Array, "*b N M K"]:
    """Cov(left_m(x), right_k(x)) for every row of x; with E[·]E[·] added, it is Ψ2 [Titsias & Lawrence 2010].

    For bumps it is E[left] E[right] (e^Δ − 1), per column
    Δ = ½ log(1 + spqt) + pqt (δδ' − ½s(pδ²/(1 + sp) + qδ'²/(1 + sq))).
    Linear factors l·x and r·x add the tilted means' products and Σ l r t, all of the order of s.
    """
    mean, s = x.mean[..., :, None, None, :], x.variance[..., :, None, None, :]
    p, q = left.precision[ROWS], right.precision[COLUMNS]
    a, b = _tilt(centre[ROWS], p, mean, s), _tilt(centre[COLUMNS], q, mean, s)
    t = s / (1.0 + s * (p + q))
    both = p * q * t
    own = jnp.sum(both * a.offset * a.shift, axis=-1) + jnp.sum(both * b.offset * b.shift, axis=-1)
    excess = 0.5 * (jnp.sum(jnp.log1p(s * both), axis=-1) - own) + jnp.sum(both * a.offset * b.offset, axis=-1)
    product, result = _products(a.log_mass, b.log_mass, excess)
    if left.slope is not None or right.slope is not None:
        l = _linear(left.slope, ROWS, mean + a.shift, q * t * (b.offset - a.shift))
        r = _linear(right.slope, COLUMNS, mean + b.shift, p * t * (a.offset - b.shift))
        mixed = jnp.sum(l.slope * r.slope * t, axis=-1)
        tilted = (l.own + l.change) * (r.own + r.change)
        change = l.change * (r.own + r.change) + l.own * r.change
        result = result * (tilted + mixed) + product * (change + mixed)
    return left.weight[..., None, :, None] * right.weight[..., None, None, :] * result


def _products(log_a, log_b, excess):
    """E[a]E[b] and E[a]E[b](e^Δ − 1), without overflow where E[a]E[b] is tiny and e^Δ is huge."""
    product = jnp.exp(log_a) * jnp.exp(log_b)
    close = product * jnp.expm1(jnp.minimum(excess, 1.0))
    return product, jnp.where(excess < 1.0, close, jnp.exp(log_a + log_b + excess) - product)


class _Linear(NamedTuple):
    """A linear factor at its bump's own tilted mean, and its change from there to the tilted mean of both bumps."""

    slope: Float[Array, "..."] | float
    own: Float[Array, "..."] | float
    change: Float[Array, "..."] | float


def _linear(slope, axes, own_mean, shift) -> _Linear:
    if slope is None:
        return _Linear(0.0, 1.0, 0.0)
    slope = slope[axes]
    return _Linear(slope, jnp.sum(slope * own_mean, axis=-1), jnp.sum(slope * shift, axis=-1))
