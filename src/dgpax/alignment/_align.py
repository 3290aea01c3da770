"""`align` and `fit_warped`: from sequences to warps and functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..inducing import Points
from ..inference import fit
from ..kernels import RBF, AbstractKernel
from ..parameters import AbstractParameter, fixed
from ..typing import Array
from ..warps import AbstractWarp, MonotonicFlow
from ._fit import WarpedFit
from ._method import Warped
from ._model import WarpedModel
from ._sequences import table_of


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
    **how: Any,
) -> WarpedFit:
    """Find warps of time under which sequences (t, y) are one function, as far as they can be [CU, appendix D].

    Two or more sequences of any lengths, each with times of its own. `posterior` is a word: "points-as-locations" and
    "fully-coupled" keep what warps and functions leave open together, "mean-field" collapses to one solution. All that
    is given (the prior of the warps, the kernel of the functions, variances) is in scaled units: times between −1 and
    1, values with mean 0 and variance 1. `discrepancy` is the variance, relative to the functions', of what remains
    different between sequences; 1e-3 and fixed unless told otherwise. Everything else is an option of `dgpax.fit`:
    engine, seed, max_seconds, progress, checkpoint, …
    """
    if len(sequences) < 2:
        raise InputError(
            f"align() needs two or more sequences, [(t_1, y_1), (t_2, y_2), …]; got {len(sequences)}. To warp a single "
            "one use fit_warped(t, y)."
        )
    discrepancy = fixed(1e-3) if discrepancy is None else discrepancy
    method = Warped(posterior, num_inducing, num_samples)
    return _fit(sequences, method, warp, kernel, noise_variance, discrepancy, how)


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
    **how: Any,
) -> WarpedFit:
    """One sequence as a stationary function of warped time, y = f(g(t)) + noise [CU, eq. 24]; else like `align`."""
    method = Warped(posterior, num_inducing, num_samples)
    return _fit([(t, y)], method, warp, kernel, noise_variance, fixed(0.0), how)


def default_warp(num_inducing: int = 10, num_knots: int = 60) -> MonotonicFlow:
    """A smooth flow over times from −1 to 1 that isn't trained: its velocity has a standard deviation of 0.3."""
    places = np.linspace(-1.2, 1.2, num_inducing)[:, None]
    kernel = RBF(fixed(0.5), fixed(0.09))
    return MonotonicFlow(kernel, Points(fixed(places)), np.linspace(-1.0, 1.0, num_knots))


def _fit(
    pairs: Sequence[Any],
    method: Warped,
    warp: AbstractWarp | None,
    kernel: AbstractKernel | None,
    noise_variance: AbstractParameter | float,
    discrepancy: AbstractParameter | float,
    how: dict[str, Any],
) -> Any:
    data = table_of(pairs)
    model = WarpedModel(
        default_warp() if warp is None else warp,
        RBF(0.2) if kernel is None else kernel,
        _per_sequence(noise_variance, data.num_outputs),
        discrepancy,
    )
    return fit(model, data, method, **how)


def _per_sequence(variance: AbstractParameter | float, num_sequences: int) -> AbstractParameter | Array:
    """A noise variance of its own for every sequence."""
    if isinstance(variance, AbstractParameter):
        return variance.with_value(jnp.broadcast_to(variance.value, (num_sequences,)))
    return jnp.full((num_sequences,), variance)
