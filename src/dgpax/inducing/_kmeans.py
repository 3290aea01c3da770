"""Inducing locations as cluster centres."""

from __future__ import annotations

import warnings

import jax.numpy as jnp
import numpy as np

from ..errors import DgpaxWarning, InputError
from ..typing import Array, Float

MINI_BATCH_ABOVE = 20_000


def distinct_rows(x: Float[Array, "N D"]) -> np.ndarray:
    """Indices of the first of every group of rows that are equal up to rounding, in order."""
    rows = np.asarray(x, dtype=np.float64)
    spread = np.ptp(rows, axis=0)
    grid = np.round(rows / np.where(spread > 0, spread, 1.0), 10)
    _, first = np.unique(grid, axis=0, return_index=True)
    return np.sort(first)


def at_most_distinct(x: Float[Array, "N D"], num_inducing: int) -> tuple[np.ndarray, int]:
    """The distinct rows, and M reduced to their number with a warning if it was larger."""
    if num_inducing < 1:
        raise InputError(f"The number of inducing points must be at least 1; got {num_inducing}.")
    candidates = distinct_rows(x)
    if num_inducing > len(candidates):
        warnings.warn(
            f"{num_inducing} inducing points were asked for, but the data has {len(candidates)} distinct rows: "
            f"using {len(candidates)}.",
            DgpaxWarning,
            stacklevel=3,
        )
    return candidates, min(num_inducing, len(candidates))


def k_means(x: Float[Array, "N D"], num_inducing: int, seed: int = 0) -> Float[Array, "M D"]:
    """Cluster centres (k-means++), of which no two coincide; mini-batches above 20,000 rows.

    >>> import jax.numpy as jnp
    >>> from dgpax.inducing import k_means
    >>> k_means(jnp.linspace(0.0, 1.0, 50)[:, None], 4).shape
    (4, 1)
    """
    candidates, num_inducing = at_most_distinct(x, num_inducing)
    rows = np.asarray(x)
    if num_inducing == len(candidates):
        return jnp.asarray(rows[candidates])
    from sklearn.cluster import KMeans, MiniBatchKMeans

    method = MiniBatchKMeans if len(rows) > MINI_BATCH_ABOVE else KMeans
    clusters = method(num_inducing, n_init=1, random_state=seed)  # pyright: ignore[reportArgumentType]
    return jnp.asarray(clusters.fit(rows).cluster_centers_, rows.dtype)
