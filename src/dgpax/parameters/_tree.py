"""Parameters of a whole model: find, freeze, set and split them by path.

A path is what you would type in Python: `layers[0].kernel.lengthscale`. A pattern is a path, the start of
one (`layers[0]` means everything in it), or has `*` for any text (`*.variance`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..errors import InputError, UnknownNameError
from ..typing import Array, ArrayLike, Float, PyTree, RandomKey
from ._base import AbstractParameter
from ._constraints import Bounded, Positive
from ._priors import AbstractPrior, LogNormalPrior, NormalPrior

T = TypeVar("T")
WEAK = {"lengthscale": (2.7, 1.0), "noise_variance": (5.0, 2.5), "variance": (1.0, 1.5)}
"""By names' endings: the centre, in units of where it starts, and the standard deviation of the logarithm.

Chosen by the coverage of intervals on functions of benchmarks/functions, with 24 rows.
"""
OTHERWISE = (1.0, 2.0)


def _is_parameter(node) -> bool:
    return isinstance(node, AbstractParameter)


def find(tree: PyTree, pattern: str = "*") -> dict[str, AbstractParameter]:
    """All parameters whose path matches, in the order of the tree."""
    found, paths = {}, []
    for path, node in jax.tree_util.tree_leaves_with_path(tree, is_leaf=_is_parameter):
        if _is_parameter(node):
            name = jax.tree_util.keystr(path).removeprefix(".")
            paths.append(name)
            if matches(name, pattern):
                found[name] = node
    if not found and pattern != "*":
        raise UnknownNameError(f"No parameter matches {pattern!r}. There are: {', '.join(paths) or 'none'}.")
    return found


def matches(name: str, pattern: str) -> bool:
    """Whether a pattern means this path."""
    regex = re.escape(pattern).replace(r"\*", ".*")
    return re.fullmatch(regex + r"([.\[].*)?", name) is not None


def _edit(tree: T, pattern: str, change: Callable[[str, AbstractParameter], AbstractParameter]) -> T:
    targets = find(tree, pattern)

    def visit(path, node):
        name = jax.tree_util.keystr(path).removeprefix(".")
        return change(name, node) if name in targets and _is_parameter(node) else node

    return jax.tree_util.tree_map_with_path(visit, tree, is_leaf=_is_parameter)


def _replace(parameter: AbstractParameter, **fields) -> AbstractParameter:
    new = object.__new__(type(parameter))
    for name in parameter.__dataclass_fields__:
        object.__setattr__(new, name, fields.get(name, getattr(parameter, name)))
    return new


def freeze(tree: T, *patterns: str) -> T:
    """A copy in which the matching parameters are not trained; all of them if no pattern is given.

    >>> import dgpax
    >>> from dgpax.kernels import RBF
    >>> kernel = dgpax.freeze(RBF(0.5), "variance")
    >>> kernel.variance.trainable, kernel.lengthscale.trainable
    (False, True)
    """
    for pattern in patterns or ("*",):
        tree = _edit(tree, pattern, lambda _, node: _replace(node, trainable=False))
    return tree


def unfreeze(tree: T, *patterns: str) -> T:
    """A copy in which the matching parameters are trained; all of them if no pattern is given.

    >>> import dgpax
    >>> from dgpax.kernels import RBF
    >>> frozen = dgpax.freeze(RBF(0.5))
    >>> dgpax.unfreeze(frozen, "lengthscale").lengthscale.trainable
    True
    """
    for pattern in patterns or ("*",):
        tree = _edit(tree, pattern, lambda _, node: _replace(node, trainable=True))
    return tree


def set_values(tree: T, values: Mapping[str, ArrayLike]) -> T:
    """A copy with new constrained values: `set_values(model, {"likelihood.noise_variance": 0.1})`."""
    for pattern, value in values.items():
        tree = _edit(tree, pattern, lambda name, node, v=value: node.with_value(_fit(name, node, v)))
    return tree


def _fit(name: str, parameter: AbstractParameter, value: ArrayLike) -> Float[Array, "..."]:
    value = jnp.asarray(value, parameter.dtype)
    try:
        return jnp.broadcast_to(value, parameter.shape)
    except ValueError as error:
        raise InputError(f"{name} has shape {parameter.shape}; got a value of shape {value.shape}.") from error


def set_prior(tree: T, pattern: str, prior: AbstractPrior | None) -> T:
    """A copy in which the matching parameters have this hyper-prior."""
    return _edit(tree, pattern, lambda _, node: _replace(node, prior=prior))


def sample_priors(tree: T, key: RandomKey) -> T:
    """A copy in which every parameter that has a hyper-prior is drawn from it."""
    names = [name for name, node in find(tree).items() if node.prior is not None]
    keys = dict(zip(names, jr.split(key, max(len(names), 1)), strict=False))

    def draw(name: str, node: AbstractParameter) -> AbstractParameter:
        if node.prior is None:
            return node
        return node.with_value(node.prior.sample(keys[name], node.shape).astype(node.dtype))

    return _edit(tree, "*", draw)


def log_prior(tree: PyTree) -> Float[Array, ""]:
    """Sum of the log hyper-priors, each on the constrained value (no Jacobian: this is for MAP)."""
    terms = [jnp.sum(node.prior.log_prob(node.value)) for node in find(tree).values() if node.prior is not None]
    return jnp.asarray(sum(terms, 0.0))


def log_jacobian(tree: PyTree) -> Float[Array, ""]:
    """What makes a density of the values of all trainable parameters one of their free scales, in logarithms."""
    return jnp.asarray(sum((jnp.sum(node.log_jacobian) for node in find(tree).values() if node.trainable), 0.0))


def free_values(tree: PyTree) -> Float[Array, " n"]:
    """All trainable parameters on their free scales, as one vector."""
    parts = [jnp.ravel(node.free) for node in find(tree).values() if node.trainable]
    return jnp.concatenate(parts) if parts else jnp.zeros(0)


def at_free_values(tree: T, vector: Float[Array, " n"]) -> T:
    """The raw arrays of the trainable parameters, as `partition` gives them, at such a vector."""
    nodes = [node for node in find(tree).values() if node.trainable]
    ends = np.cumsum([node.raw.size for node in nodes])
    parts = zip(nodes, jnp.split(vector, ends[:-1]), strict=True)
    raws = [node.at_free(part.reshape(node.raw.shape)).astype(node.raw.dtype) for node, part in parts]
    return jax.tree.unflatten(jax.tree.structure(partition(tree)[0]), raws)


def with_weak_priors(tree: T) -> T:
    """A copy in which every trainable parameter has a hyper-prior: its own, or a wide one around where it stands.

    Positive ones without a prior get a log-normal around their geometric mean, real ones a normal around their mean;
    bounded ones stay as they are, as their interval is a prior. Length scales and noise are believed to be larger than
    where they start, which a fit with few rows can't tell from the data: it takes noise for ripples.
    """

    def believe(name: str, node: AbstractParameter) -> AbstractParameter:
        if not node.trainable or node.prior is not None or isinstance(node, Bounded):
            return node
        value = np.asarray(node.value, float)
        factor, spread = next((known for ending, known in WEAK.items() if name.endswith(ending)), OTHERWISE)
        if isinstance(node, Positive):
            return _replace(node, prior=LogNormalPrior(np.mean(np.log(factor * value)), spread))
        return _replace(node, prior=NormalPrior(np.mean(value), spread))

    return _edit(tree, "*", believe)


def partition(tree: T) -> tuple[T, T]:
    """Split into (raw arrays of the trainable parameters, everything else); `combine` puts them together."""

    def spec(node):
        if not _is_parameter(node):
            return False
        nothing = jax.tree.map(lambda _: False, node)
        return eqx.tree_at(lambda parameter: parameter.raw, nothing, node.trainable)

    return eqx.partition(tree, jax.tree.map(spec, tree, is_leaf=_is_parameter))


def combine(trainable: T, rest: T) -> T:
    """The inverse of `partition`."""
    return eqx.combine(trainable, rest)


def cast(tree: T, dtype) -> T:
    """A copy with every floating array in this dtype."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, tree)
