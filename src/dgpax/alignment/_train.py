"""Training of a model of warped sequences, with the engine that fits take."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax

from ..errors import InputError, NumericalError
from ..inference import Gradient
from ..parameters import combine, log_prior, partition
from ..typing import Array, Float, Int, PyTree, RandomKey
from ._bound import WarpedTerms, warped_elbo
from ._model import WarpedModel
from ._posterior import AbstractWarpedPosterior
from ._sequences import Sequences

MAX_REJECTIONS_IN_A_ROW = 10


class ModelAndPosterior(NamedTuple):
    """What is trained."""

    model: WarpedModel
    posterior: AbstractWarpedPosterior


class WarpedProblem(eqx.Module):
    """What the engine works on."""

    target: ModelAndPosterior
    data: Sequences
    num_samples: int = eqx.field(static=True)

    def trainable(self) -> PyTree:
        """The raw arrays that are trained."""
        return partition(self.target)[0]

    def at(self, trainable: PyTree) -> ModelAndPosterior:
        """The target with these trained values."""
        return combine(trainable, partition(self.target)[1])

    def on_batch(self, key: RandomKey, step: Int[Array, ""], size: int | None) -> WarpedProblem:
        """Itself: sequences aren't cut into batches."""
        if size is not None:
            raise InputError(f"Warped sequences are trained on all rows; got batch_size={size}. Use batch_size=None.")
        return self

    def loss(self, trainable: PyTree, key: RandomKey) -> tuple[Float[Array, ""], WarpedTerms]:
        """Minus the bound and the log hyper-priors."""
        target = self.at(trainable)
        terms = warped_elbo(target.model, target.posterior, self.data, key=key, num_samples=self.num_samples)
        return -(terms.total + log_prior(target)), terms


def train(problem: WarpedProblem, engine: Gradient, seed: int) -> tuple[ModelAndPosterior, np.ndarray, int]:
    """The trained target, the bound at every step, and how many steps were rejected.

    A step that isn't finite is taken back, and the next ones are shorter.
    """
    key = jr.key(seed)
    state = _init(engine, problem, key)
    history, kept = [], []
    for start in range(0, engine.max_steps, engine.steps_per_call):
        steps = jnp.arange(start, start + engine.steps_per_call)
        state, (bounds, accepted) = _steps(engine, problem, state, key, steps, jnp.asarray(engine.max_steps))
        taken = min(engine.steps_per_call, engine.max_steps - start)
        history.append(np.asarray(bounds)[:taken])
        kept.append(np.asarray(accepted)[:taken])
        if not np.any(np.concatenate(kept)[-MAX_REJECTIONS_IN_A_ROW:]):
            raise NumericalError(
                f"{MAX_REJECTIONS_IN_A_ROW} steps in a row were not finite, so training stopped after step "
                f"{start + taken}. Lower the learning rate, take fewer inducing points or raise the noise variance."
            )
    return problem.at(engine.result(state)), np.concatenate(history), int(np.sum(~np.concatenate(kept)))


@eqx.filter_jit
def _init(engine: Gradient, problem: Any, key: RandomKey):
    """`problem` is a WarpedProblem, which answers what an engine asks of the Problem of a DeepGP."""
    return engine.init(problem, key)


@eqx.filter_jit
def _steps(engine: Gradient, problem: Any, state, key: RandomKey, steps: Int[Array, " T"], end):
    def body(state, step):
        new, info = engine.step(problem, state, key, step)
        leaves = [info.objective, *jax.tree.leaves(engine.result(new))]
        accepted = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves]))
        kept = _where(accepted, new, engine.retreat(state))
        return _where(step < end, kept, state), (info.objective, accepted)

    return lax.scan(body, state, steps)


def _where(condition, yes: PyTree, no: PyTree) -> PyTree:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
