"""Posterior families of warped sequences by one word, where training starts."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from ..errors import UnknownNameError
from ..linalg import matmul, safe_cholesky, solve_cholesky
from ..parameters import Real
from ..typing import Array, Float
from ._model import WarpedModel
from ._posterior import AbstractWarpedPosterior, DrawnLocations, FixedLocations, WarpOutputs
from ._sequences import Sequences

START_SCALE = 0.03


def _mean_field(model: WarpedModel, data: Sequences, num_inducing: int) -> FixedLocations:
    z, values = _start(data, num_inducing)
    mean = model.root(z).solve(_smoothed(model, z, values)[:, None])[:, 0]
    return FixedLocations(_warps(model, data, data.num_sequences), z, mean, _narrow(values))


def _fully_coupled(model: WarpedModel, data: Sequences, num_inducing: int) -> FixedLocations:
    alone = _mean_field(model, data, num_inducing)
    warps = _warps(model, data, 1)
    coupling = Real(jnp.zeros((alone.mean.shape[0], warps.mean.shape[1]), data.t.dtype))
    return FixedLocations(warps, alone.locations, alone.mean, alone.root, coupling)


def _points_as_locations(model: WarpedModel, data: Sequences, num_inducing: int) -> DrawnLocations:
    z, values = _start(data, num_inducing)
    return DrawnLocations(_warps(model, data, 1), z, values, _narrow(values))


FAMILIES: dict[str, Callable[[WarpedModel, Sequences, int], AbstractWarpedPosterior]] = {
    "mean-field": _mean_field,
    "fully-coupled": _fully_coupled,
    "points-as-locations": _points_as_locations,
}


def posterior_at_identity(word: str, model: WarpedModel, data: Sequences, num_inducing: int) -> AbstractWarpedPosterior:
    """The family that a word names, with warps near the identity and functions through the data."""
    if word not in FAMILIES:
        raise UnknownNameError(f"posterior={word!r} isn't known. There are: {', '.join(FAMILIES)}.")
    return FAMILIES[word](model, data, num_inducing)


def _start(data: Sequences, num_inducing: int):
    """Inducing times, evenly over every sequence, and what it is there."""
    starts, ends = data.starts_and_ends()
    z = np.stack([np.linspace(start, end, num_inducing) for start, end in zip(starts, ends, strict=True)])
    dtype = data.t.dtype
    return jnp.asarray(z, dtype), jnp.asarray(data.interpolated(z).reshape(-1), dtype)


def _smoothed(model: WarpedModel, z: Float[Array, "J M"], values: Float[Array, " R"]) -> Float[Array, " R"]:
    """What the prior makes of noisy values of unwarped functions, K (K + noise)⁻¹ y."""
    K = model.covariance(z, z)
    noise = jnp.repeat(model.noise_variance.value, z.shape[1])
    return matmul(K, solve_cholesky(safe_cholesky(K + jnp.diag(noise)).factor, values[:, None]))[:, 0]


def _warps(model: WarpedModel, data: Sequences, num_blocks: int) -> WarpOutputs:
    return WarpOutputs.near_identity(data.num_sequences, model.warp.num_inducing, num_blocks, START_SCALE, data.t.dtype)


def _narrow(values):
    return START_SCALE * jnp.eye(values.shape[0], dtype=values.dtype)
