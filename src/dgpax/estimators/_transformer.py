"""Few numbers for many: the Bayesian GP-LVM."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..architectures import decoder, gplvm, latent_positions
from ..data import Dataset
from ..errors import InputError
from ..inducing import distinct_rows
from ..inference import fit
from . import _predictions as predictions
from ._base import AbstractEstimator
from ._plan import settling, suitable_batch_size
from ._rows import Rows, suitable_size

MAX_STEPS = 1000


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

    def __init__(
        self,
        n_components: int | None = None,
        num_inducing: int = 50,
        max_steps: int | None = None,
        max_time: float | int | None = None,
        batch_size: int | None = None,
        random_state: Any = 0,
        verbose: bool | int = False,
    ):
        self.n_components = n_components
        self.num_inducing = num_inducing
        self.max_steps = max_steps
        self.max_time = max_time
        self.batch_size = batch_size
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y=None) -> DeepGPTransformer:
        """Train on a table [N, D]; y is ignored."""
        x = self._encode(X, learn=True)
        if len(x) < 2:
            raise InputError(f"Found array with {len(x)} sample(s) while a minimum of 2 is required.")
        num_latents = _suitable_num_latents(x) if self.n_components is None else self.n_components
        seed = self._seed()
        num_inducing = min(self.num_inducing, 1 << (len(distinct_rows(jnp.asarray(x))).bit_length() - 1))
        model, _, method = gplvm(x, num_latents, num_inducing, encoder=True, seed=seed)
        data = Rows(np.zeros((len(x), 0)), x, np.ones(len(x))).padded()
        engine = settling(True, suitable_batch_size(self.batch_size, data), self.max_steps or MAX_STEPS)
        self.fit_ = fit(
            model, data, method, engine=engine, seed=seed, max_seconds=self.max_time, progress=bool(self.verbose)
        )
        self.embedding_ = self._place(x)
        self._n_features_out = num_latents
        return self

    def transform(self, X) -> np.ndarray:
        """The mean position of every row, [N, n_components]."""
        check_is_fitted(self)
        return self._place(self._encode(X, learn=False))

    def inverse_transform(self, X) -> np.ndarray:
        """The mean of the rows that belong to positions, [N, D], for tables of numbers without gaps."""
        check_is_fitted(self)
        if not self.encoding_.is_trivial:
            raise InputError("inverse_transform is for tables of numbers without gaps; this one had others.")
        return predictions.moments(decoder(self.fit_), np.asarray(X, float))[0]

    def _place(self, x: np.ndarray) -> np.ndarray:
        padding = suitable_size(len(x)) - len(x)
        rows = jnp.asarray(np.concatenate([x, np.broadcast_to(x[:1], (padding, x.shape[1]))]))
        positions = latent_positions(self.fit_, Dataset(jnp.zeros((len(rows), 0)), rows))
        return np.asarray(positions.mean)[: len(x)]


def _suitable_num_latents(x: np.ndarray) -> int:
    scale = x.std(axis=0)
    return max(1, min(2, int(np.linalg.matrix_rank((x - x.mean(axis=0)) / np.where(scale > 0, scale, 1.0)))))
