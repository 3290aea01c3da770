"""Rows in chunks of few sizes, so that predictions share compiled programs and bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..data import check_inputs
from ..distributions import AbstractJointGaussian, Gaussian
from ..errors import InputError
from ..fits import AbstractFit, require_fit
from ..model import DeepGP
from ..typing import Array, Float, PyTree

SIZES = (64, 128, 256, 1024, 4096)
FEW = 8
"""Rows that are asked about alone, for which the smallest size would be eight times the work."""
SAMPLE_ROWS = 32_768
"""Rows times samples at a time."""


class Asked(NamedTuple):
    """What a likelihood may ask of f at some rows, in the words of a layer's outputs."""

    fitted: AbstractFit
    x: Float[Array, "N D"]
    num_samples: int
    seed: int

    @property
    def model(self) -> DeepGP:
        return self.fitted.model

    def marginal(self) -> Gaussian:
        """Every row and output by itself."""
        return self.fitted.latent(self.x, num_samples=self.num_samples, seed=self.seed)

    def by_row(self) -> Gaussian | AbstractJointGaussian:
        """The outputs of a row, together where they depend on each other."""
        return self.fitted.latent_jointly(self.x, "outputs", num_samples=self.num_samples, seed=self.seed)

    def for_expectation(self) -> Gaussian | AbstractJointGaussian:
        """What moments, components and draws of new observations depend on."""
        return self.model.likelihood.for_expectation(self)


def by_chunks(
    fitted: AbstractFit,
    x,
    num_samples: int,
    seed: int,
    answer: Callable[[Asked, slice], PyTree],
    combine: Callable[[np.ndarray, list[PyTree]], PyTree],
) -> PyTree:
    """combine(weights, answers of all parts of a fit) for all rows of raw inputs; arrays have the rows second to last.

    A part answers answer(its f at the rows, which rows). The rows of the last chunks are filled up with copies, whose
    results are dropped. What all rows give is written in place: there are never two copies of it.
    """
    if num_samples < 1:
        raise InputError(f"num_samples must be at least 1; got {num_samples}.")
    require_fit(fitted, "predict")
    inputs = check_inputs(x, fitted.num_inputs, fitted.input_names)
    num_rows, result, weights = len(inputs), None, np.asarray([weight for weight, _ in fitted.parts])
    for start, count, size in _chunks(num_rows, max(256, SAMPLE_ROWS // num_samples)):
        rows = slice(start, start + count)
        chunk = _filled(inputs if count == num_rows else inputs[rows], size)
        asked = [Asked(part, part.model.inputs_to_model_units(chunk), num_samples, seed) for _, part in fitted.parts]
        part = combine(weights, [answer(f, rows) for f in asked])
        part = jax.tree.map(lambda leaf, count=count: lax.slice_in_dim(leaf, 0, count, axis=leaf.ndim - 2), part)
        if count == num_rows:
            return part
        if result is None:
            result = jax.tree.map(
                lambda leaf: jnp.zeros((*leaf.shape[:-2], num_rows, leaf.shape[-1]), leaf.dtype), part
            )
        result = _written(result, part, jnp.asarray(start))
    return result


def _chunks(num_rows: int, most: int) -> Iterator[tuple[int, int, int]]:
    """Where chunks start, how many rows they have and what size they are filled up to: at most twice as many."""
    sizes = [FEW] if num_rows <= FEW else [size for size in SIZES if size <= most]
    start = 0
    while start < num_rows:
        left = num_rows - start
        fitting = [size for size in sizes if size <= 2 * left] or sizes[:1]
        size = next((size for size in fitting if size >= left), fitting[-1])
        yield start, min(left, size), size
        start += size


@partial(jax.jit, static_argnames="size")
def _filled(x: Float[Array, "N D"], size: int) -> Float[Array, "R D"]:
    return x if len(x) == size else jnp.concatenate([x, jnp.broadcast_to(x[:1], (size - len(x), x.shape[1]))])


@partial(jax.jit, donate_argnums=0)
def _written(result: PyTree, part: PyTree, start) -> PyTree:
    return jax.tree.map(lambda a, b: lax.dynamic_update_slice_in_dim(a, b, start, axis=a.ndim - 2), result, part)
