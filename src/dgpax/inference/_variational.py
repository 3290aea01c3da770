"""Variational inference: the model and a posterior family are trained together."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.random as jr

from ..data import Dataset
from ..errors import InputError, UnknownNameError
from ..layers import LatentVariables, latent_layers
from ..model import DeepGP
from ..objectives import ELBO, AbstractObjective, ImportanceWeighted, Predictive, SampledELBO
from ..parameters import cast
from ..posteriors import AbstractLatents, AbstractPosterior, Encoder, PointsAsLocations, RowLatents, posterior_at_prior
from ._base import AbstractMethod
from ._gradient import Gradient
from ._mismatch import refuse_blocks
from ._settling import Settling

CPU_CHUNK_ROWS = 500
"""Rows whose intermediates stay in a CPU's cache (measured)."""

OBJECTIVES: dict[str, Callable[[int, int | None], AbstractObjective]] = {
    "elbo": ELBO,
    "sampled-elbo": SampledELBO,
    "importance-weighted": ImportanceWeighted,
    "predictive": Predictive,
}


class ModelAndPosterior(NamedTuple):
    """What variational inference trains."""

    model: DeepGP
    posterior: AbstractPosterior


class Variational(AbstractMethod):
    """Maximises the ELBO, or another objective, over the model and a posterior.

    `posterior` is a word for a family that starts at the prior ("mean-field", "stripes-and-arrow", "fully-coupled",
    "layer-wise", "chain", "points-as-locations"), or a posterior to go on from. `num_samples` draws of the inner layers
    per step; a model with one layer needs none. `latents` says how the posterior of latent variables is held: "rows"
    (numbers of their own for every row) or "encoder" (a network). `chunk_rows` bounds the memory; None takes what suits
    the device. `objective` is "elbo"; "sampled-elbo", which draws inducing outputs, as right and noisier [STAR, section
    4.1]; "importance-weighted", tighter with latent variables; "predictive", the log of the mean density; or an
    objective of your own, whose target has a `model` and a `posterior`, with settings of its own. `hold_first` are
    paths of parameters that stay until all others have been trained once: `("*.noise_variance",)` keeps the noise from
    explaining what the layers haven't learnt yet.
    """

    posterior: AbstractPosterior | str = "mean-field"
    num_samples: int = eqx.field(static=True, default=1)
    latents: str = eqx.field(static=True, default="rows")
    chunk_rows: int | None = eqx.field(static=True, default=None)
    objective: AbstractObjective | str = "elbo"
    hold_first: tuple[str, ...] = eqx.field(static=True, default=())

    def __check_init__(self):
        if isinstance(self.objective, str) and self.objective not in OBJECTIVES:
            raise UnknownNameError(
                f"Variational(objective={self.objective!r}) isn't known. There are: {', '.join(OBJECTIVES)}."
            )
        if self.num_samples < 1:
            raise InputError(f"Variational(num_samples=...) must be at least 1; got {self.num_samples}.")
        if self.latents not in ("rows", "encoder"):
            raise UnknownNameError(f"Variational(latents={self.latents!r}) isn't known. There are: rows, encoder.")

    @property
    def warm_up(self):
        return self.hold_first

    def target(self, model, data):
        posterior = self.posterior
        if isinstance(posterior, str):
            own = latent_layers(model.layers).values()
            latents = [self._latents(layer, data, number) for number, layer in enumerate(own)]
            posterior = posterior_at_prior(posterior, model.layers, latents)
        refuse_blocks(posterior, model)
        return ModelAndPosterior(model, cast(posterior, data.x.dtype))

    def terms(self, target, data, key):
        objective = self.objective
        if isinstance(objective, str):
            chunk_rows = suitable_chunk_rows(self.chunk_rows, self.num_samples)
            objective = OBJECTIVES[objective](self.num_samples, chunk_rows)
        return objective.terms(target, data, key)

    def default_engine(self):
        """Natural gradients that come to rest; Adam for points as locations, whose KL isn't that of a Gaussian."""
        drawn = self.posterior == "points-as-locations" or isinstance(self.posterior, PointsAsLocations)
        return Gradient() if drawn else Settling()

    def _latents(self, layer: LatentVariables, data: Dataset, number: int) -> AbstractLatents:
        if self.latents == "rows":
            return RowLatents.start(data.num_rows, layer.num_latents, data.x.dtype)
        return Encoder.start(data.num_inputs, data.num_outputs, layer.num_latents, jr.key(number))


def suitable_chunk_rows(chunk_rows: int | None, num_samples: int) -> int | None:
    """What the user wants, or what suits the device: chunks for a CPU's cache, all rows at once on a GPU."""
    if chunk_rows is not None or jax.default_backend() != "cpu":
        return chunk_rows
    return max(1, CPU_CHUNK_ROWS // num_samples)
