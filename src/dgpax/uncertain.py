"""f at inputs that are known up to a Gaussian error: exact moments where kernels have them, else samples.

Var f(x) = E_x[Var(f | x)] + Var_x[E(f | x)], which for a Gaussian posterior of the inducing outputs needs only the mean
and the covariance of Kuf(x) under q(x) [Girard et al. 2003; Titsias & Lawrence 2010; FRAMEWORK, section 7].
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from .conditional import Projection
from .covariances import IndependentProcesses
from .data import Dataset
from .distributions import Gaussian
from .errors import InputError, MissingRuleError
from .expectations import Expansion, expansion
from .kernels import AbstractKernel
from .layers import GPLayer, Layers
from .linalg import AbstractRoot, einsum, matmul
from .means import AbstractMean, Constant, Identity, Linear, Zero
from .model import DeepGP
from .parameters import cast
from .posteriors import AbstractCarry, AbstractPosterior, Moments
from .propagate import AbstractOutputs, draw_noise, propagate
from .typing import Array, Float, RandomKey


def uncertain_marginal(
    index: int, layer: GPLayer, posterior: AbstractPosterior, x: Gaussian, carry: AbstractCarry
) -> Gaussian:
    """The exact mean and variance of f_l(x) for x ~ q(x), every row and output by itself; f itself isn't Gaussian.

    With A = E[R⁻¹Kuf(x)]ᵀ in the place of A(x), the posterior's own marginal misses tr(B Cov(Kuf(x))), where
    B = R⁻ᵀ(S + mmᵀ − I)R⁻¹ for q(v) = N(m, S) and RRᵀ = Kuu. That term loses digits as Kuu nears singularity, more
    than f at a known x does, so it is computed in float64 where that is available.
    """
    terms = expansion(posterior.inducing(index, layer, carry), _kernel(layer))
    rows = Gaussian(x.mean[..., None, :, :], x.variance[..., None, :, :])
    root = carry.root(index)
    A = jnp.swapaxes(root.solve(terms.expected_cross(rows)), -1, -2)
    residual = jnp.maximum(terms.expected_variance(rows) - jnp.sum(A**2, axis=-1), 0.0)
    q = posterior.marginal(index, Projection(A, residual), carry)

    M = A.shape[-1]
    moments = posterior.moments(index, jnp.eye(M, dtype=A.dtype)[None], carry)
    accurate = cast((terms, rows, root, moments), jnp.result_type(float))
    spread = _through_inputs(accurate, layer.mean)
    variance = q.variance + jnp.swapaxes(spread, -1, -2).astype(q.variance.dtype)
    return Gaussian(q.mean + layer.mean(x.mean), jnp.maximum(variance, 0.0))


def sampled_outputs(
    layers: Layers,
    posterior: AbstractPosterior,
    x: Gaussian,
    carry: AbstractCarry,
    *,
    key: RandomKey,
    num_samples: int,
    batch: Dataset | None = None,
) -> AbstractOutputs:
    """q(f_L(x)) given draws of x ~ q(x) and of the inner layers, [S, N, P]: the components of a mixture.

    For every kernel and depth.
    """
    key_inputs, key_layers = jr.split(key)
    inputs = x.sample(key_inputs, num_samples)
    noise = draw_noise(layers, key_layers, num_samples, x.mean.shape[-2], x.mean.dtype)
    return propagate(layers, posterior, inputs, carry, noise, batch=batch)


def as_input_variance(variance, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
    """The variances of the entries of x, from one number, one per column [D] or one per entry [N, D]."""
    values = np.asarray(variance)
    if values.shape not in ((), x.shape[1:], x.shape):
        raise InputError(
            f"The variance of inputs of shape {x.shape} needs one number, one per column, or that shape; got shape "
            f"{values.shape}."
        )
    if not (np.all(np.isfinite(values)) and np.all(values >= 0)):
        raise InputError("The variance of inputs must be finite and at least 0. Pass squared standard deviations.")
    return jnp.broadcast_to(jnp.asarray(values, x.dtype), x.shape)


def input_variance_to_model_units(model: DeepGP, variance: Float[Array, "N D"]) -> Float[Array, "N D"]:
    """Variances of raw inputs as the first layer sees them; constant columns have none."""
    scaling = model.scaling
    if scaling is None:
        return variance
    scaled = variance / scaling.x_scale / scaling.x_scale
    return jnp.where(scaling.x_constant, 0.0, scaled).astype(variance.dtype)


def _through_inputs(
    parts: tuple[Expansion, Gaussian, AbstractRoot, Moments], mean: AbstractMean
) -> Float[Array, "*b P N"]:
    """tr(B Cov(Kuf(x))), and what the mean function adds to the variance of E(f | x)."""
    terms, rows, root, moments = parts
    m, S = moments.mean, matmul(moments.spread, jnp.swapaxes(moments.spread, -1, -2))
    inner = S + einsum("pm,pk->pmk", m, m) - jnp.eye(m.shape[-1], dtype=m.dtype)
    B = root.solve_transposed(jnp.swapaxes(root.solve_transposed(inner), -1, -2))
    spread = terms.weighted_covariance(B, rows)
    slope = _slope(mean, rows.mean.shape[-1])
    if slope is None:
        return spread
    weights = root.solve_transposed(m[..., None])[..., 0]
    return spread + _with_linear_mean(terms, rows, weights, jnp.broadcast_to(slope, (len(m), slope.shape[-1])))


def _with_linear_mean(
    terms: Expansion, rows: Gaussian, weights: Float[Array, "P M"], slope: Float[Array, "P D"]
) -> Float[Array, "*b P N"]:
    """2 Cov(g(x), w·x) + Var(w·x) for g = weights · Kuf and the mean function w·x + constant.

    By Stein's lemma Cov(g(x), w·x) = Σ_d w_d s_d ∂E[g(x)]/∂μ_d, one directional derivative.
    """
    direction = slope[:, None, :] * rows.variance
    mean, variance = (jnp.broadcast_to(part, direction.shape) for part in (rows.mean, rows.variance))

    def average(mean):
        return einsum("pm,...pmn->...pn", weights, terms.expected_cross(Gaussian(mean, variance)))

    _, covariance = jax.jvp(average, (mean,), (direction,))
    return 2.0 * covariance + jnp.sum(slope[:, None, :] * direction, axis=-1)


def _slope(mean: AbstractMean, num_inputs: int) -> Float[Array, "*p D"] | None:
    """w of the mean function w·x + constant, [P, D] or [1, D]; None where it is 0."""
    match mean:
        case Zero() | Constant():
            return None
        case Identity():
            return jnp.eye(num_inputs)
        case Linear():
            return mean.weights.value.T
    raise MissingRuleError(
        f"The mean function {type(mean).__name__} has no closed form for uncertain inputs; Zero, Constant, Identity "
        "and Linear have one. Use samples of the inputs."
    )


def _kernel(layer: GPLayer) -> AbstractKernel:
    processes = layer.processes()
    if not isinstance(processes, IndependentProcesses) or processes.mixing is not None:
        raise InputError(
            f"Closed forms for uncertain inputs are for independent outputs; {type(layer.kernel).__name__} makes them "
            "depend on each other. Use samples of the inputs."
        )
    return processes.kernel
