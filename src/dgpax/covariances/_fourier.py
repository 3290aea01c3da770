"""Rules for Fourier features.

A Matérn process of order p = ν + ½ solves (d/dx + λ)ᵖ f = white noise of density q, λ = √(2ν)/ℓ, from the stationary
state s = (f, f', …) at the left edge a of the interval. Its Hilbert space therefore has the inner product

    ⟨g, h⟩ = 1/q ∫ (D + λ)ᵖg (D + λ)ᵖh dx + s_g(a)ᵀ P⁻¹ s_h(a),    P = Cov(s).

On whole periods D + λ scales and rotates each pair (cos, sin), so that the integral is diagonal, (b − a)/(2S(ω)) with
the spectral density S(ω) = q/(λ² + ω²)ᵖ (twice that for the constant), and the edge adds a positive term of rank p.
This is [Hensman, Durrande & Solin 2018, sec. 3.4] with all terms positive, also for Matérn 5/2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..inducing import AbstractInducing, AdditiveFourier, Fourier, ProductFourier
from ..kernels import (
    LMC,
    AbstractKernel,
    AbstractMultiOutputKernel,
    AbstractStationary,
    ActiveDimensions,
    Matern12,
    Matern32,
    Matern52,
    Product,
    Sum,
)
from ..linalg import Kronecker, LowRankPlusDiagonal, matmul
from ..typing import Array, Float
from ._rules import Kuf, Kuu

AnyKernel = AbstractKernel | AbstractMultiOutputKernel


class _Order(NamedTuple):
    """q = density · σ² λ²ᵖ⁻¹; root Rᵀ of P⁻¹ = RᵀR/σ² for the state (f, f'/λ, f''/λ²)."""

    density: float
    root: Float[np.ndarray, "p p"]


_ORDERS: dict[type[AbstractStationary], _Order] = {
    Matern12: _Order(2.0, np.eye(1)),
    Matern32: _Order(4.0, np.eye(2)),
    Matern52: _Order(16.0 / 3.0, np.array([[3.0 / 8**0.5, 0, 0], [0, 3**0.5, 0], [1.0 / 8**0.5, 0, 1.0]])),
}


class _Process(NamedTuple):
    """A Matérn process of one input: σ² [Q], λ [Q], and what its order brings."""

    variance: Float[Array, " Q"]
    rate: Float[Array, " Q"]
    density: float
    root: Float[np.ndarray, "p p"]

    @property
    def order(self) -> int:
        return len(self.root)


def _process(kernel: AbstractStationary) -> _Process:
    order = _ORDERS[type(kernel)]
    lengthscale = kernel.lengthscale.value
    if lengthscale.ndim and lengthscale.shape[-1] != 1:
        raise InputError(
            f"Fourier features are for one input; this kernel has {lengthscale.shape[-1]} length scales. "
            "Use a sum or product of kernels .on(column) with AdditiveFourier or ProductFourier."
        )
    lengthscale = jnp.atleast_1d(lengthscale if lengthscale.ndim == 0 else lengthscale[..., 0])
    rate = math.sqrt(2 * len(order.root) - 1) / lengthscale
    return _Process(jnp.atleast_1d(kernel.variance.value), rate, *order)


def _edge(inducing: Fourier, process: _Process) -> Float[Array, "Q M p"]:
    """(φ, φ'/λ, φ''/λ²) of every feature at the edges of the interval."""
    ratio = jnp.asarray(inducing.frequencies, process.rate.dtype) / process.rate[:, None]
    one, zero = jnp.ones_like(ratio), jnp.zeros_like(ratio)
    cosines = jnp.stack([one, zero, -(ratio**2)], axis=-1)
    sines = jnp.stack([zero, ratio, zero], axis=-1)
    constant = jnp.broadcast_to(jnp.asarray([1.0, 0.0, 0.0], ratio.dtype), (len(ratio), 1, 3))
    return jnp.concatenate([constant, cosines, sines], axis=-2)[..., : process.order]


def _kuu(inducing: Fourier, kernel: AbstractStationary) -> LowRankPlusDiagonal:
    process = _process(kernel)
    variance, rate = process.variance[:, None], process.rate[:, None]
    omega = np.concatenate([[0.0], inducing.frequencies, inducing.frequencies])
    norms = (inducing.high - inducing.low) * np.where(omega == 0.0, 1.0, 0.5)
    squares = (jnp.asarray(omega, rate.dtype) / rate) ** 2
    diagonal = jnp.asarray(norms, rate.dtype) * rate * (1.0 + squares) ** process.order / (process.density * variance)
    low_rank = matmul(_edge(inducing, process), jnp.asarray(process.root, rate.dtype)) / jnp.sqrt(variance)[..., None]
    return LowRankPlusDiagonal(diagonal, jnp.broadcast_to(low_rank, (*diagonal.shape, process.order)))


def _kuf(inducing: Fourier, kernel: AbstractStationary, x: Float[Array, "*b 1 N D"]) -> Float[Array, "*b Q M N"]:
    """φ_m(x) inside, whatever the hyperparameters; E[f(x) | f = φ_m on the interval] outside.

    Beyond an edge that is the solution of (D + λ)ᵖg = 0 that continues φ: e^(−τ) Σ_{j<p} τʲ/j! (1 ± D/λ)ʲφ, with
    τ = λ · distance to the edge.
    """
    if x.shape[-1] != 1:
        raise InputError(
            f"Fourier features are for one input column; got {x.shape[-1]}. Use kernel.on(column), or sums and "
            "products of such kernels with AdditiveFourier and ProductFourier."
        )
    x = x[..., 0]
    process = _process(kernel)
    p, low, high = process.order, inducing.low, inducing.high
    inside = (x >= low) & (x <= high)
    tau = process.rate[:, None] * jnp.maximum(jnp.maximum(low - x, x - high), 0.0)
    side = jnp.where(x > high, 1.0, -1.0).astype(x.dtype)
    powers = [sum(tau**j / (math.factorial(i) * math.factorial(j - i)) for j in range(i, p)) for i in range(p)]
    decay = jnp.where(inside, 0.0, jnp.exp(-tau))
    continued = jnp.stack([decay * side**i * power for i, power in enumerate(powers)], axis=-2)
    features = inducing.features(jnp.clip(x, low, high)) * inside[..., None, :]
    return features + matmul(_edge(inducing, process), continued)


for _kind in _ORDERS:
    Kuu.register(Fourier, _kind)(_kuu)
    Kuf.register(Fourier, _kind)(_kuf)


@Kuu.register(Fourier, ActiveDimensions)
def _(inducing: Fourier, kernel: ActiveDimensions) -> LowRankPlusDiagonal:
    return Kuu(inducing, kernel.kernel)


@Kuf.register(Fourier, ActiveDimensions)
def _(inducing: Fourier, kernel: ActiveDimensions, x: Float[Array, "*b 1 N D"]) -> Float[Array, "*b Q M N"]:
    return Kuf(inducing, kernel.kernel, kernel._select(x))


@Kuu.register(AdditiveFourier, Sum)
def _(inducing: AdditiveFourier, kernel: Sum) -> LowRankPlusDiagonal:
    """The terms are independent: one block each, together again diagonal plus low rank."""
    blocks = [Kuu(part, term) for part, term in _pairs(inducing, kernel)]
    ranks = [block.low_rank.shape[-1] for block in blocks]
    Q = max(block.diagonal.shape[0] for block in blocks)
    padded = [
        jnp.pad(block.low_rank, ((0, 0), (0, 0), (sum(ranks[:i]), sum(ranks[i + 1 :]))))
        for i, block in enumerate(blocks)
    ]
    return LowRankPlusDiagonal(_stack(Q, [block.diagonal[..., None] for block in blocks])[..., 0], _stack(Q, padded))


@Kuf.register(AdditiveFourier, Sum)
def _(inducing: AdditiveFourier, kernel: Sum, x: Float[Array, "*b 1 N D"]) -> Float[Array, "*b Q M N"]:
    parts = [Kuf(part, term, x) for part, term in _pairs(inducing, kernel)]
    return _stack(max(part.shape[-3] for part in parts), parts)


@Kuu.register(ProductFourier, Product)
def _(inducing: ProductFourier, kernel: Product) -> Kronecker:
    return Kronecker(tuple(Kuu(part, factor) for part, factor in _pairs(inducing, kernel)))


@Kuf.register(ProductFourier, Product)
def _(inducing: ProductFourier, kernel: Product, x: Float[Array, "*b 1 N D"]) -> Float[Array, "*b Q M N"]:
    product, *rest = (Kuf(part, factor, x) for part, factor in _pairs(inducing, kernel))
    for factor in rest:
        outer = product[..., :, None, :] * factor[..., None, :, :]
        product = outer.reshape(*outer.shape[:-3], -1, outer.shape[-1])
    return product


def _pairs(inducing: AdditiveFourier | ProductFourier, kernel: Sum | Product):
    if len(inducing.parts) != len(kernel.kernels):
        raise InputError(
            f"{type(inducing).__name__} has {len(inducing.parts)} parts and the kernel {len(kernel.kernels)}. "
            "Give one Fourier per kernel, in the same order."
        )
    return tuple(zip(inducing.parts, kernel.kernels, strict=True))


def _stack(num_processes: int, parts: Sequence[Float[Array, "*b _ _ _"]]) -> Float[Array, "*b Q M K"]:
    """Along the axis of features, each part for all processes."""
    shapes = [(*part.shape[:-3], num_processes, *part.shape[-2:]) for part in parts]
    return jnp.concatenate([jnp.broadcast_to(part, shape) for part, shape in zip(parts, shapes, strict=True)], axis=-2)


def refuse_uncovered(inducing: AbstractInducing | None, kernel: AnyKernel, x: Float[Array, "N D"]) -> None:
    """An error if inputs lie outside the interval of Fourier features, where these are not waves any more."""
    for part, column in _intervals(inducing, kernel):
        low, high = float(np.min(x[:, column])), float(np.max(x[:, column]))
        if low < part.low or high > part.high:
            raise InputError(
                f"The Fourier interval [{part.low:g}, {part.high:g}] doesn't cover input column {column}, which goes "
                f"from {low:g} to {high:g} in the model's units. Widen it, best by some length scales, or use "
                "Fourier.covering(x, ...)."
            )


def _intervals(inducing: AbstractInducing | None, kernel: AnyKernel) -> Iterator[tuple[Fourier, int]]:
    """The Fourier features of each input column."""
    if isinstance(kernel, LMC):
        yield from _intervals(inducing, kernel.latent)
    elif isinstance(inducing, Fourier):
        yield inducing, kernel.dimensions[0] if isinstance(kernel, ActiveDimensions) else 0
    elif isinstance(inducing, AdditiveFourier | ProductFourier) and isinstance(kernel, Sum | Product):
        for part, term in _pairs(inducing, kernel):
            yield from _intervals(part, term)
