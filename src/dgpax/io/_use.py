"""Whether a fit from a file can be used: its prediction is traced with the shapes of its arrays, without a number."""

from __future__ import annotations

from math import prod

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
SIZES = 64, 256, 1024
"""To which predictions fill up rows."""


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
    except Exception as error:
        raise _misfit(error) from error
    arrays = [leaf for leaf in jax.tree.leaves(fitted) if eqx.is_inexact_array(leaf)]
    rows, num_samples = _unlike_any_axis(arrays)
    x = jax.ShapeDtypeStruct((rows, fitted.num_inputs), arrays[0].dtype if arrays else jnp.result_type(float))
    try:
        return eqx.filter_eval_shape(lambda fitted, x: predict_moments(fitted, x, num_samples=num_samples), fitted, x)
    except Exception as error:
        raise _misfit(error) from error


def _misfit(error: Exception) -> ModelFileError:
    return ModelFileError(
        f"The file holds a fit whose parts don't fit together, so that it can't predict: {str(error)[:500]}"
    )


def _unlike_any_axis(arrays: list[jax.Array]) -> tuple[int, int]:
    """Numbers of rows and samples that no array has by chance, so that none fits because of them."""
    sizes = {size for array in arrays for size in array.shape}
    rows = next((below + 1 for below, filled in zip((0, *SIZES), SIZES, strict=False) if filled not in sizes), 1)
    return rows, next(number for number in range(2, len(sizes) + 3) if number not in sizes)


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
            work += prod(part.image_shape) * prod(part.patch_shape) * part.image_shape[-1]
    return work


def _counts(value) -> list[int]:
    """The whole numbers of a field."""
    if isinstance(value, tuple):
        return [count for item in value if not isinstance(item, tuple) for count in _counts(item)]
    return [int(value)] if isinstance(value, int | np.integer) else []
