"""Functions as compiled programs, over which the compiler takes no longer than it gains.

By default XLA spends on a CPU two to three times as long on a program of ours as with these options, which leave its
steps as fast (measured at 80, 1,000 and 10,000 rows).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer

P = ParamSpec("P")
T = TypeVar("T")

QUICK = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 1}
UNKNOWN_OPTION = "No such compile option"


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """`equinox.filter_jit` with these options on CPUs. Within other programs, whose options hold, it is plain.

    An option that the environment's XLA_FLAGS speak of stays as it is there.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    options = {name: value for name, value in QUICK.items() if name not in flags}
    plain = eqx.filter_jit(function)
    quick = eqx.filter_jit(function, compiler_options=options)  # pyright: ignore[reportCallIssue]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        nonlocal quick
        if jax.default_backend() != "cpu" or isinstance(jnp.zeros(()), Tracer):
            return plain(*args, **kwargs)
        try:
            return quick(*args, **kwargs)
        except jax.errors.JaxRuntimeError as error:
            if UNKNOWN_OPTION not in str(error):
                raise
        quick = plain  # another XLA
        return plain(*args, **kwargs)

    return call
