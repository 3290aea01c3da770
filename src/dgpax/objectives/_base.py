"""The contract of what is maximised."""

import abc

import equinox as eqx

from ..typing import Array, Float, PyTree, RandomKey


class AbstractTerms(eqx.Module):
    """The parts of an objective, to look at; `total` is what is maximised."""

    jitter: eqx.AbstractVar[Float[Array, ""]]

    @property
    @abc.abstractmethod
    def total(self) -> Float[Array, ""]:
        """The value to maximise."""


class AbstractObjective(eqx.Module):
    """What an engine maximises, with its settings."""

    @abc.abstractmethod
    def terms(self, target: PyTree, data: PyTree, key: RandomKey) -> AbstractTerms:
        """The value at a target, in parts. All randomness comes from the key."""
