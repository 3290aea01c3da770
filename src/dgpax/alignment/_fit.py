"""Fitted sequences."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from ..data import Scaling
from ..errors import InputError
from ..fits import AbstractFit, FitReport
from ..programs import compiled
from ..typing import Array, Float
from ._bound import warped_elbo
from ._draws import WarpedDraws, draw_all, latent_given_warps
from ._model import WarpedModel
from ._posterior import AbstractWarpedPosterior
from ._sequences import Sequences


class WarpedFit(AbstractFit):
    """Fitted sequences, as functions of time with an output for each: an equal mixture over draws of the warps.

    `warped`, `posterior` and `data` are in the units of the `scaling`; `warped_draws` come in those of the data.
    """

    warped: WarpedModel
    posterior: AbstractWarpedPosterior
    data: Sequences
    scaling: Scaling
    report: FitReport = eqx.field(static=True)
    input_names: tuple[str, ...] = eqx.field(static=True)
    num_inputs: int = eqx.field(static=True, default=1)

    @property
    def model(self):
        """The functions and the noise, without the warps."""
        return self.warped.without_warps(self.scaling)

    def latent(self, x, *, num_samples, seed):
        return self._given_warps(x, num_samples, seed, None)

    def latent_jointly(self, x, over, *, num_samples, seed):
        return self._given_warps(x, num_samples, seed, over)

    def draws(self, x, num_draws, *, seed):
        return jnp.swapaxes(self._draw_all(x[:, 0], num_draws, seed).compositions, -1, -2)

    def functions(self, num_draws, *, seed, num_features=0):
        raise InputError("Functions of warped time are drawn at times that are known: use warped_draws(grid=...).")

    def warped_draws(self, num_draws: int = 25, *, grid: Any = None, seed: int = 0) -> WarpedDraws:
        """Warps and functions that belong together, at the times of `grid`, or evenly over those of the data.

        O((2 J G)³) for G points of the grid per draw: the functions are drawn at all points together.
        """
        low, high = self._raw_times(self.data.t.min()), self._raw_times(self.data.t.max())
        times = jnp.linspace(low, high, 100) if grid is None else jnp.asarray(grid)
        if times.ndim != 1:
            raise InputError(f"grid must be times of shape (G,), a warp has one input; got {times.shape}.")
        drawn = self._draw_all(self.inputs(times[:, None])[:, 0].astype(self.data.t.dtype), num_draws, seed)
        shift, scale = self.scaling.y_mean[:, None], self.scaling.y_scale[:, None]
        values = (shift + scale * f for f in (drawn.functions, drawn.compositions))
        return WarpedDraws(times, self._raw_times(drawn.warps), *values)

    def bound(self, num_samples: int = 1000, *, seed: int = 0) -> Float[Array, ""]:
        """The evidence lower bound of the scaled data, averaged over draws of the warps."""
        terms = compiled(warped_elbo)(self.warped, self.posterior, self.data, key=jr.key(seed), num_samples=num_samples)
        return terms.total

    def _given_warps(self, x: Float[Array, "N 1"], num_samples: int, seed: int, over: str | None):
        keys = jr.split(jr.key(seed), num_samples)
        return latent_given_warps(self.warped, self.posterior, x[:, 0], keys, self.data.num_sequences, over)

    def _draw_all(self, times: Float[Array, " G"], num_draws: int, seed: int) -> WarpedDraws:
        return draw_all(self.warped, self.posterior, times, jr.key(seed), self.data.num_sequences, num_draws)

    def _raw_times(self, scaled: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.scaling.x_mean[0] + self.scaling.x_scale[0] * scaled
