"""Feeds: rows that an engine sees a batch at a time, however many there are and wherever they lie."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from ..errors import InputError
from ..typing import Array, Float, Int, PyTree, RandomKey
from ._dataset import Dataset
from ._minibatch import minibatch
from ._scaling import Scaling, standardise


class AbstractFeed(eqx.Module):
    """What steps are fed with. The order of rows is a function of a key, so that a fit can stop and go on.

    `block` reads, outside of programs, what some steps in a row need; `batch` takes the rows of one of these steps out
    of it, inside.
    """

    @property
    @abc.abstractmethod
    def head(self) -> Any:
        """A Dataset that stands for all rows outside of steps: all of them if they are in memory, else random ones."""

    @property
    @abc.abstractmethod
    def num_rows(self) -> int:
        """How many there are, without those of weight 0. Not for use inside jit."""

    @property
    @abc.abstractmethod
    def total_weight(self) -> Float[Array, ""]:
        """As many rows as count."""

    @property
    @abc.abstractmethod
    def standard(self) -> Scaling:
        """What gives every column mean 0 and deviation 1, over all rows."""

    @property
    @abc.abstractmethod
    def in_batches(self) -> bool:
        """Whether a step sees some of the rows only."""

    @property
    @abc.abstractmethod
    def identity(self) -> Any:
        """What a checkpoint knows the feed by."""

    @abc.abstractmethod
    def prepared(self, head: PyTree, scaling: Scaling | None) -> AbstractFeed:
        """The same rows as an objective reads them: in the units of `scaling`, as `head` was prepared."""

    @abc.abstractmethod
    def block(self, key: RandomKey, start: int, count: int) -> PyTree:
        """What `count` steps from `start` on need, on the host."""

    @abc.abstractmethod
    def batch(self, block: PyTree, key: RandomKey, step: Int[Array, ""]) -> Any:
        """The rows of one step, in the program; a pure function."""


class InMemory(AbstractFeed):
    """Rows in memory: `batch_size` of them per step by `minibatch`, or all if it is None.

    >>> import numpy as np
    >>> import dgpax
    >>> from dgpax.data import InMemory
    >>> from dgpax.inference import NaturalGradient
    >>> x = np.linspace(0.0, 1.0, 200)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> feed, engine = InMemory(data, batch_size=50), NaturalGradient(max_steps=20)
    >>> fitted = dgpax.fit(dgpax.deep_gp(data, 2, 5), feed, "variational", engine=engine, progress=False)
    """

    data: Any
    """A Dataset, or once prepared whatever an objective reads."""
    batch_size: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.batch_size is not None and self.batch_size < 1:
            raise InputError(f"InMemory(batch_size=...) must be at least 1; got {self.batch_size}.")

    @property
    def head(self):
        return self.data

    @property
    def num_rows(self):
        return self.data.counted().num_rows

    @property
    def total_weight(self):
        if not isinstance(self.data, Dataset):
            raise InputError("This engine needs an objective on rows of data; use another one.")
        weights = self.data.weights
        return jnp.asarray(float(self.data.num_rows)) if weights is None else jnp.sum(weights)

    @property
    def standard(self):
        return standardise(self.data)

    @property
    def in_batches(self):
        return self.batch_size is not None and self.batch_size < self.data.num_rows

    @property
    def identity(self):
        return self.data, self.batch_size

    def prepared(self, head, scaling):
        return InMemory(head, self.batch_size if self.in_batches else None)

    def block(self, key, start, count):
        return None

    def batch(self, block, key, step):
        return self.data if self.batch_size is None else minibatch(self.data, key, step, self.batch_size)


def as_feed(data: Any) -> AbstractFeed:
    """A feed stays what it is; of anything else every step sees all."""
    return data if isinstance(data, AbstractFeed) else InMemory(data)
