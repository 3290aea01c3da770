"""Inference in models of warped sequences, in the loop of all fits."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar, NamedTuple

import equinox as eqx
import optax

from ..errors import InputError
from ..inference import AbstractMethod, Gradient, Outcome
from ._bound import warped_elbo
from ._fit import WarpedFit
from ._model import WarpedModel
from ._posterior import AbstractWarpedPosterior
from ._sequences import Sequences, scaling_of
from ._words import posterior_at_identity


class WarpedTarget(NamedTuple):
    """A model of warped sequences and its posterior, which are trained together."""

    model: WarpedModel
    posterior: AbstractWarpedPosterior


class Warped(AbstractMethod):
    """Maximises the bound of a `WarpedModel` and its posterior, estimated by a few draws of the warps.

    For data with one input, time, and an output with gaps for every sequence, as `align` makes them.
    """

    needs_all_rows: ClassVar[bool] = True

    posterior: str = eqx.field(static=True, default="points-as-locations")
    num_inducing: int = eqx.field(static=True, default=20)
    num_samples: int = eqx.field(static=True, default=5)

    def __check_init__(self):
        if self.num_inducing < 2 or self.num_samples < 1:
            raise InputError(
                f"num_inducing must be at least 2 and num_samples 1; got {self.num_inducing} and {self.num_samples}."
            )

    def check(self, model, data):
        if not isinstance(model, WarpedModel):
            raise InputError(f"Warped() infers a WarpedModel; got {type(model).__name__}. Use align() or fit_warped().")
        return scaling_of(data).dataset(data)

    def target(self, model, data):
        start = posterior_at_identity(self.posterior, model, Sequences.of(data), self.num_inducing)
        return WarpedTarget(model, start)

    def prepare(self, target, data):
        return Sequences.of(data)

    def terms(self, target, data, key):
        return warped_elbo(target.model, target.posterior, data, key=key, num_samples=self.num_samples)

    def outcome(self, target, model, data, scaled):
        sequences, scaling = Sequences.of(scaled), scaling_of(data)

        def make(report):
            return WarpedFit(  # pyright: ignore[reportCallIssue] - its model is a property
                warped=target.model, posterior=target.posterior, data=sequences, scaling=scaling, report=report,
                input_names=data.input_names,
            )  # fmt: skip

        return Outcome(target.model.without_warps(scaling), make, 0.0, 0, {}, ())

    def largest_matrix(self, model, data):
        return 0

    def default_engine(self):
        return default_engine()


@lru_cache
def default_engine(max_steps: int = 3000) -> Gradient:
    """Adam with a rate that falls from 0.01 to a twentieth of it: the bound is noisy, and where it is steep a rate that
    stays keeps warps from settling. Always the same object, so that compiled programs are used again."""
    rate = optax.cosine_decay_schedule(0.01, max_steps, 0.05)
    return Gradient(optimiser=optax.adam(rate), max_steps=max_steps, steps_per_call=min(100, max_steps))
