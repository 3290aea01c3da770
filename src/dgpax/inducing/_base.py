"""The contract of an inducing variable."""

from __future__ import annotations

import abc

import equinox as eqx


class AbstractInducing(eqx.Module):
    """M linear functionals u of a latent process. What they are is said by the rules in `dgpax.covariances`."""

    @property
    @abc.abstractmethod
    def num_inducing(self) -> int:
        """M."""
