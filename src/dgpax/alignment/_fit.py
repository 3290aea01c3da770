"""`align` and `fit_warped`: from sequences to warps and functions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

from ..errors import InputError
from ..inducing import Points
from ..inference import Gradient
from ..kernels import RBF, AbstractKernel
from ..parameters import AbstractParameter, cast, fixed
from ..typing import Array, Float
from ..warps import AbstractWarp, MonotonicFlow
from ._bound import warped_elbo
from ._draws import WarpedDraws, draw_all
from ._model import WarpedModel
from ._posterior import AbstractWarpedPosterior
from ._sequences import Sequences, Units, read_sequences
from ._train import WarpedTarget, train
from ._words import posterior_at_identity


@dataclass(frozen=True, eq=False)
class WarpedReport:
    """What happened in training. `history` has the bound at every step, an estimate by a few draws."""

    history: np.ndarray
    rejected_steps: int
    seconds: float


class WarpedFit(eqx.Module):
    """Fitted sequences: model and posterior work in scaled `units`; draws come in those of the data."""

    model: WarpedModel
    posterior: AbstractWarpedPosterior
    data: Sequences
    units: Units
    report: WarpedReport = eqx.field(static=True)

    def draws(self, num_draws: int = 25, *, grid: Any = None, seed: int = 0) -> WarpedDraws:
        """Warps and functions that belong together, at the times of `grid`, or evenly over those of the data.

        O((2 J G)³) for G points of the grid per draw: the functions are drawn at all points together.
        """
        low, high = self._raw_times(self.data.t.min()), self._raw_times(self.data.t.max())
        times = jnp.linspace(low, high, 100) if grid is None else jnp.asarray(grid)
        if times.ndim != 1:
            raise InputError(f"grid must be times of shape (G,), a warp has one input; got {times.shape}.")
        scaled = ((times - self.units.t_middle) / self.units.t_scale).astype(self.data.t.dtype)
        number = self.data.num_sequences
        drawn = draw_all(self.model, self.posterior, scaled, jr.key(seed), number, num_draws)
        values = (self.units.y_mean + self.units.y_scale * f for f in (drawn.functions, drawn.compositions))
        return WarpedDraws(times, self._raw_times(drawn.warps), *values)

    def bound(self, num_samples: int = 1000, *, seed: int = 0) -> Float[Array, ""]:
        """The evidence lower bound of the scaled data, averaged over draws of the warps."""
        terms = eqx.filter_jit(warped_elbo)(
            self.model, self.posterior, self.data, key=jr.key(seed), num_samples=num_samples
        )
        return terms.total

    def _raw_times(self, scaled: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.units.t_middle + self.units.t_scale * scaled


def align(
    sequences: Sequence[Any],
    posterior: str = "points-as-locations",
    *,
    warp: AbstractWarp | None = None,
    kernel: AbstractKernel | None = None,
    noise_variance: AbstractParameter | float = 1e-3,
    discrepancy: AbstractParameter | float | None = None,
    num_inducing: int = 20,
    num_samples: int = 5,
    engine: Gradient | None = None,
    seed: int = 0,
) -> WarpedFit:
    """Find warps of time under which sequences (t, y) are one function, as far as they can be [CU, appendix D].

    Two or more sequences of any lengths, each with times of its own. `posterior` is a word: "points-as-locations" and
    "fully-coupled" keep what warps and functions leave open together, "mean-field" collapses to one solution. All that
    is given (the prior of the warps, the kernel of the functions, variances) is in scaled units: times between −1 and
    1, values with mean 0 and variance 1. `discrepancy` is the variance, relative to the functions', of what remains
    different between sequences; 1e-3 and fixed unless told otherwise.
    """
    if len(sequences) < 2:
        raise InputError(
            f"align() needs two or more sequences, [(t_1, y_1), (t_2, y_2), …]; got {len(sequences)}. To warp a single "
            "one use fit_warped(t, y)."
        )
    discrepancy = fixed(1e-3) if discrepancy is None else discrepancy
    return _fit(
        sequences, posterior, warp, kernel, noise_variance, discrepancy, num_inducing, num_samples, engine, seed
    )


def fit_warped(
    t: Any,
    y: Any,
    posterior: str = "points-as-locations",
    *,
    warp: AbstractWarp | None = None,
    kernel: AbstractKernel | None = None,
    noise_variance: AbstractParameter | float = 1e-3,
    num_inducing: int = 50,
    num_samples: int = 5,
    engine: Gradient | None = None,
    seed: int = 0,
) -> WarpedFit:
    """One sequence as a stationary function of warped time, y = f(g(t)) + noise [CU, eq. 24]; else like `align`."""
    return _fit([(t, y)], posterior, warp, kernel, noise_variance, fixed(0.0), num_inducing, num_samples, engine, seed)


def default_warp(num_inducing: int = 10, num_knots: int = 60) -> MonotonicFlow:
    """A smooth flow over times from −1 to 1 that isn't trained: its velocity has a standard deviation of 0.3."""
    places = np.linspace(-1.2, 1.2, num_inducing)[:, None]
    kernel = RBF(fixed(0.5), fixed(0.09))
    return MonotonicFlow(kernel, Points(fixed(places)), np.linspace(-1.0, 1.0, num_knots))


@lru_cache
def default_engine(max_steps: int = 3000) -> Gradient:
    """Adam with a rate that falls from 0.01 to a twentieth of it: the bound is noisy, and where it is steep a rate that
    stays keeps warps from settling. Always the same object, so that compiled programs are used again."""
    rate = optax.cosine_decay_schedule(0.01, max_steps, 0.05)
    return Gradient(optimiser=optax.adam(rate), max_steps=max_steps, steps_per_call=min(100, max_steps))


def _fit(
    pairs: Sequence[Any],
    word: str,
    warp: AbstractWarp | None,
    kernel: AbstractKernel | None,
    noise_variance: AbstractParameter | float,
    discrepancy: AbstractParameter | float,
    num_inducing: int,
    num_samples: int,
    engine: Gradient | None,
    seed: int,
) -> WarpedFit:
    if num_inducing < 2 or num_samples < 1:
        raise InputError(f"num_inducing must be at least 2 and num_samples 1; got {num_inducing} and {num_samples}.")
    started = time.perf_counter()
    data, units = read_sequences(pairs)
    model = WarpedModel(
        default_warp() if warp is None else warp,
        RBF(0.2) if kernel is None else kernel,
        _per_sequence(noise_variance, data.num_sequences),
        discrepancy,
    )
    model = cast(model, data.t.dtype)
    target = WarpedTarget(model, posterior_at_identity(word, model, data, num_inducing))
    trained, run = train(target, data, num_samples, engine or default_engine(), seed)
    report = WarpedReport(np.asarray(run.history), run.rejected, time.perf_counter() - started)
    return WarpedFit(trained.model, trained.posterior, data, units, report)


def _per_sequence(variance: AbstractParameter | float, num_sequences: int) -> AbstractParameter | Array:
    """A noise variance of its own for every sequence."""
    if isinstance(variance, AbstractParameter):
        return variance.with_value(jnp.broadcast_to(variance.value, (num_sequences,)))
    return jnp.full((num_sequences,), variance)
