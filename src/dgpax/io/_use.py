"""Whether a fit from a file can be used: its prediction is traced with the shapes of its arrays, without a number."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..architectures import decoder
from ..errors import DgpaxError, ModelFileError
from ..fits import AbstractFit, FitReport
from ..kernels import PatchGrid
from ..linalg import BlockPattern
from ..prediction import PredictedMoments, predict_moments
from ..storage import field_names
from ._ranges import parts_of

MOST_WORK = 10_000_000
OF_A_PART, OF_A_COUNT, OF_A_PAIR = 10_000, 50, 10
"""What tracing one costs, in units of which a second has ten million or more."""
LARGEST_COUNT = 2**31


def traced(fitted: AbstractFit) -> PredictedMoments | None:
    """The shapes of a prediction of one row, or `ModelFileError` if the parts of the fit don't fit together.

    None where tracing might take seconds or much memory, for a model of a thousand parts and more, and where there are
    no inputs to predict from: such a fit isn't looked at any further.
    """
    if _work(fitted) > MOST_WORK:
        return None
    try:
        fitted = fitted if fitted.num_inputs else decoder(fitted)
    except DgpaxError:
        return None
    try:
        floats = [leaf.dtype for leaf in jax.tree.leaves(fitted) if eqx.is_inexact_array(leaf)]
        x = jax.ShapeDtypeStruct((1, fitted.num_inputs), floats[0] if floats else jnp.result_type(float))
        return eqx.filter_eval_shape(lambda fitted, x: predict_moments(fitted, x, num_samples=2), fitted, x)
    except Exception as error:
        raise ModelFileError(
            f"The file holds a fit whose parts don't fit together, so that it can't predict: {str(error)[:500]}"
        ) from error


def _work(fitted: AbstractFit) -> int:
    """How much Python has to do before the first number is computed: by parts, counts and patterns."""
    work = 0
    for part in parts_of(fitted):
        if isinstance(part, FitReport):
            continue
        work += OF_A_PART
        counts = [value for name in field_names(type(part)) for value in _counts(getattr(part, name))]
        if any(abs(count) > LARGEST_COUNT for count in counts):
            raise ModelFileError(
                f"The file holds a {type(part).__name__} with a number of {max(counts)}. It was changed."
            )
        work += OF_A_COUNT * sum(map(abs, counts))
        work += sum(max(0, getattr(part, name)) ** 3 for name in ("quadrature_order",) if hasattr(part, name))
        if isinstance(part, BlockPattern):
            work += OF_A_PAIR * (part.size + len(part.coupled)) * part.size
        if isinstance(part, PatchGrid):
            work += int(np.prod(part.image_shape)) * int(np.prod(part.patch_shape)) * part.image_shape[-1]
    return work


def _counts(value) -> list[int]:
    """The whole numbers of a field."""
    if isinstance(value, tuple):
        return [count for item in value if not isinstance(item, tuple) for count in _counts(item)]
    return [int(value)] if isinstance(value, int | np.integer) else []
