"""Looking into programs before they are compiled."""

from __future__ import annotations

import jax
from jax.extend import core

LAPACK = ("cholesky", "triangular_solve", "eigh", "qr", "lu", "svd")


def equations(jaxpr):
    """Of a program and all programs in it."""
    for equation in jaxpr.eqns:
        yield equation
        for value in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda v: hasattr(v, "eqns")):
            inner = value.jaxpr if isinstance(value, core.ClosedJaxpr) else value
            if isinstance(inner, core.Jaxpr):
                yield from equations(inner)


def largest_batch(function, *arguments) -> int:
    """The most axes of an array that LAPACK is given; 0 if it isn't called."""
    found = equations(jax.make_jaxpr(function)(*arguments).jaxpr)
    axes = [v.aval.ndim for equation in found if equation.primitive.name in LAPACK for v in equation.invars]
    return max(axes, default=0)
