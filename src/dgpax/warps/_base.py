"""The contract of a prior over increasing functions."""

import abc

import equinox as eqx

from ..typing import Array, Float
from ._integral import IncreasingFunctions


class AbstractWarp(eqx.Module):
    """A prior over increasing functions of one input, around the identity, by M whitened inducing outputs v ~ N(0, I).

    Given v and as much noise as it asks for, a draw is a function; with both at zero it is the identity. What is
    believed about v is a posterior, whose KL against the prior is that of v: nothing else of a draw has one.
    """

    @property
    @abc.abstractmethod
    def num_inducing(self) -> int:
        """M."""

    @property
    @abc.abstractmethod
    def num_noise(self) -> int:
        """How many standard normal numbers a draw needs besides v; may be 0."""

    @abc.abstractmethod
    def draw(self, whitened: Float[Array, "*s M"], noise: Float[Array, "*s E"]) -> IncreasingFunctions:
        """A function for every v."""
