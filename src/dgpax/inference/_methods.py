"""Ways of inference by one word."""

from __future__ import annotations

from ..errors import InputTypeError, UnknownNameError
from ._base import AbstractMethod
from ._conjugate import Exact, Sparse
from ._sampling import Sampling
from ._variational import Variational

METHODS: dict[str, type[AbstractMethod]] = {
    "exact": Exact,
    "sparse": Sparse,
    "variational": Variational,
    "sghmc": Sampling,
}


def as_method(inference: str | AbstractMethod) -> AbstractMethod:
    """The method that a word stands for; a method stays what it is."""
    if isinstance(inference, AbstractMethod):
        return inference
    if not isinstance(inference, str):
        raise InputTypeError(
            f"inference must be a word or a method; got {type(inference).__name__}. Rows are given as one Dataset: "
            "fit(model, dataset(x, y))."
        )
    if inference not in METHODS:
        raise UnknownNameError(f"inference={inference!r} isn't known. There are: {', '.join(METHODS)}.")
    return METHODS[inference]()
