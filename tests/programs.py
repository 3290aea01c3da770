"""Looking into programs before they are compiled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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


@contextmanager
def compilations() -> Iterator[list[str]]:
    """The names of what is compiled meanwhile, such as "jit(take_steps)"."""
    names: list[str] = []

    def listen(event: str, duration_secs: float, **about) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            names.append(str(about.get("fun_name", "")))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield names
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
