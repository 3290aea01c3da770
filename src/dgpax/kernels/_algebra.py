"""Sums, products, multiples and powers of kernels."""

from __future__ import annotations

import functools
import operator

import equinox as eqx

from ..errors import InputError
from ._base import AbstractKernel


class Sum(AbstractKernel):
    """k₁ + k₂ + …

    >>> from dgpax.kernels import RBF, Linear
    >>> type(RBF(1.0) + Linear()).__name__
    'Sum'
    """

    kernels: tuple[AbstractKernel, ...]

    def __init__(self, *kernels: AbstractKernel):
        self.kernels = _flatten(Sum, kernels)

    def cross(self, x, y):
        return functools.reduce(operator.add, (kernel.cross(x, y) for kernel in self.kernels))

    def gram(self, x):
        return functools.reduce(operator.add, (kernel.gram(x) for kernel in self.kernels))

    def diag(self, x):
        return functools.reduce(operator.add, (kernel.diag(x) for kernel in self.kernels))


class Product(AbstractKernel):
    """k₁ · k₂ · …

    >>> from dgpax.kernels import RBF, Periodic
    >>> type(RBF(10.0) * Periodic(1.0)).__name__  # a pattern that repeats and slowly changes
    'Product'
    """

    kernels: tuple[AbstractKernel, ...]

    def __init__(self, *kernels: AbstractKernel):
        self.kernels = _flatten(Product, kernels)

    def cross(self, x, y):
        return functools.reduce(operator.mul, (kernel.cross(x, y) for kernel in self.kernels))

    def gram(self, x):
        return functools.reduce(operator.mul, (kernel.gram(x) for kernel in self.kernels))

    def diag(self, x):
        return functools.reduce(operator.mul, (kernel.diag(x) for kernel in self.kernels))


class Scaled(AbstractKernel):
    """factor · k with a constant factor; for a trained one use the kernel's own variance."""

    kernel: AbstractKernel
    factor: float = eqx.field(static=True, converter=float)

    def __check_init__(self):
        if not 0 < self.factor < float("inf"):
            raise InputError(f"A kernel can be multiplied by a positive number only; got {self.factor}.")

    def cross(self, x, y):
        return self.factor * self.kernel.cross(x, y)

    def gram(self, x):
        return self.factor * self.kernel.gram(x)

    def diag(self, x):
        return self.factor * self.kernel.diag(x)


class Power(AbstractKernel):
    """kⁿ for a whole number n ≥ 1."""

    kernel: AbstractKernel
    exponent: int = eqx.field(static=True)

    def __check_init__(self):
        if not isinstance(self.exponent, int) or self.exponent < 1:
            raise InputError(f"A kernel's power must be a whole number, at least 1; got {self.exponent!r}.")

    def cross(self, x, y):
        return self.kernel.cross(x, y) ** self.exponent

    def gram(self, x):
        return self.kernel.gram(x) ** self.exponent

    def diag(self, x):
        return self.kernel.diag(x) ** self.exponent


def _flatten(kind: type[Sum] | type[Product], kernels: tuple[AbstractKernel, ...]) -> tuple[AbstractKernel, ...]:
    if not kernels:
        raise InputError(f"{kind.__name__} needs at least one kernel; got none.")
    parts: list[AbstractKernel] = []
    for kernel in kernels:
        parts.extend(kernel.kernels if isinstance(kernel, kind) else (kernel,))
    return tuple(parts)
