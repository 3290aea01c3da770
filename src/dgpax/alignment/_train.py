"""Training of a model of warped sequences, in the loop of all fits."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx

from ..errors import NumericalError
from ..inference import AbstractEngine, Run, maximise
from ..objectives import AbstractObjective
from ._bound import warped_elbo
from ._model import WarpedModel
from ._posterior import AbstractWarpedPosterior
from ._sequences import Sequences


class WarpedTarget(NamedTuple):
    """A model of warped sequences and its posterior, which are trained together."""

    model: WarpedModel
    posterior: AbstractWarpedPosterior


class WarpedBound(AbstractObjective):
    """The bound, estimated by a few draws of the warps."""

    num_samples: int = eqx.field(static=True)

    def terms(self, target, data, key):
        return warped_elbo(target.model, target.posterior, data, key=key, num_samples=self.num_samples)


def train(
    target: WarpedTarget, data: Sequences, num_samples: int, engine: AbstractEngine, seed: int
) -> tuple[WarpedTarget, Run]:
    """The trained target and the record of its steps, or an error if they weren't finite."""
    trained, run = maximise(WarpedBound(num_samples), target, data, engine, seed=seed)
    if run.gave_up:
        raise NumericalError(
            f"{run.rejected_in_a_row} steps in a row were not finite, so training stopped after step {run.step}. Lower "
            "the learning rate, take fewer inducing points or raise the noise variance."
        )
    return trained, run
