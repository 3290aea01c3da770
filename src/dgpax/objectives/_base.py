"""What an objective returns."""

import abc

import equinox as eqx

from ..typing import Array, Float


class AbstractTerms(eqx.Module):
    """The parts of an objective, to look at; `total` is what is maximised."""

    jitter: eqx.AbstractVar[Float[Array, ""]]

    @property
    @abc.abstractmethod
    def total(self) -> Float[Array, ""]:
        """The value to maximise."""
