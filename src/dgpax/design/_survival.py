"""How likely a run is to end with values, from those that didn't."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..typing import Array, Bool, Float

WIDTHS = (0.05, 0.1, 0.2, 0.4)
"""Of the neighbourhoods that are compared, in units of the cube's diagonal."""


class Survival(eqx.Module):
    """The share of runs near a point that ended with values, weighed by a Gaussian of their distance; one more that
    did is added, so that a single failure forbids nothing far from it."""

    points: Float[Array, "R D"]
    there: Bool[Array, " R"]
    succeeded: Bool[Array, " R"]
    width: Float[Array, ""]

    @classmethod
    def of(cls, points: Float[np.ndarray, "R D"], there, succeeded) -> Survival:
        """With the width by which the runs predict each other best."""
        widths = np.asarray(WIDTHS) * np.sqrt(points.shape[1])
        real, ok = points[there], succeeded[there].astype(float)
        squared = np.sum((real[:, None] - real) ** 2, axis=-1)
        losses = []
        for width in widths:
            near = np.exp(-0.5 * squared / width**2) * (1.0 - np.eye(len(real)))
            p = np.clip((1.0 + near @ ok) / (1.0 + near.sum(axis=1)), 1e-3, 1.0 - 1e-3)
            losses.append(-np.mean(np.where(ok > 0, np.log(p), np.log(1.0 - p))))
        width = jnp.asarray(widths[int(np.argmin(losses))])
        return cls(jnp.asarray(points), jnp.asarray(there), jnp.asarray(succeeded), width)

    def __call__(self, u: Float[Array, "N D"]) -> Float[Array, " N"]:
        squared = jnp.sum((u[:, None] - self.points) ** 2, axis=-1)
        near = jnp.where(self.there, jnp.exp(-0.5 * squared / self.width**2), 0.0)
        return (1.0 + near @ self.succeeded.astype(u.dtype)) / (1.0 + jnp.sum(near, axis=1))
