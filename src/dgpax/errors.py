"""Errors and warnings. Every message says what came, what was wanted and what to do."""

from __future__ import annotations


class DgpaxError(Exception):
    """Base of every error that dgpax raises on purpose."""


class InputError(DgpaxError, ValueError):
    """Data or an argument that can't be used: shape, dtype, NaN, inf, empty, out of range."""


class InputTypeError(DgpaxError, TypeError):
    """A value of a kind that can't be used (text, times, sparse matrices)."""


class NumericalError(DgpaxError, ArithmeticError):
    """A computation stayed not finite although every remedy was tried. `fit` holds what there was before."""

    fit: object | None = None


class MissingRuleError(DgpaxError, LookupError):
    """A dispatch table has no rule for this combination of types."""


class UnknownNameError(DgpaxError, KeyError):
    """A name (of a parameter, dataset, method) that isn't known; the message lists those that are."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class MissingDataError(DgpaxError, FileNotFoundError):
    """A named dataset whose file isn't on this machine."""


class ModelFileError(DgpaxError, ValueError):
    """A saved model or checkpoint that can't be written or trusted; the message says what is wrong with it."""


class DistributedError(DgpaxError, RuntimeError):
    """Another process of the same fit is gone."""


class DgpaxWarning(UserWarning):
    """Something was repaired or reduced; the message names it."""
