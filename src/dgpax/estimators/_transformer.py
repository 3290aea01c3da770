"""Few numbers for many: the Bayesian GP-LVM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..architectures import decoder, latent_positions
from ..data import Dataset
from ..errors import InputError
from ..prediction import predict_moments
from ..recipes import padded, train_gplvm
from ._base import AbstractEstimator


@dataclass(eq=False, repr=False)
class DeepGPTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, AbstractEstimator):
    """Positions of rows in a space of few dimensions, by a Gaussian process latent variable model with an encoder.

    `n_components=None` means two, or one for rows that lie on a line. A network learns to place rows, so that new ones
    are placed as those of the training data are, each by itself.

    >>> import numpy as np
    >>> from dgpax import DeepGPTransformer
    >>> rng = np.random.default_rng(0)
    >>> table = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 5))
    >>> DeepGPTransformer(n_components=2, max_steps=50).fit_transform(table).shape
    (40, 2)
    """

    n_components: int | None = None
    num_inducing: int | None = None
    max_steps: int | None = None
    max_time: float | int | None = None
    batch_size: int | None = None
    random_state: Any = 0
    verbose: bool | int = False

    def fit(self, X, y=None) -> DeepGPTransformer:
        """Train on a table [N, D]; y is ignored."""
        x = self._encode(X, learn=True)
        if len(x) < 2:
            raise InputError(f"Found array with {len(x)} sample(s) while a minimum of 2 is required.")
        self.fit_ = train_gplvm(self._recipe(), x, self.n_components)
        self.embedding_ = self._place(x)
        self._n_features_out = self.embedding_.shape[1]
        return self

    def transform(self, X) -> np.ndarray:
        """The mean position of every row, [N, n_components]."""
        return self._place(self._inputs(X))

    def inverse_transform(self, X) -> np.ndarray:
        """The mean of the rows that belong to positions, [N, D], for tables of numbers without gaps."""
        check_is_fitted(self)
        if not self.encoding_.is_trivial:
            raise InputError("inverse_transform is for tables of numbers without gaps; this one had others.")
        return np.asarray(predict_moments(decoder(self.fit_), np.asarray(X, float)).mean)

    def _place(self, x: np.ndarray) -> np.ndarray:
        rows = jnp.asarray(padded(x))
        positions = latent_positions(self.fit_, Dataset(jnp.zeros((len(rows), 0)), rows))
        return np.asarray(positions.mean)[: len(x)]
