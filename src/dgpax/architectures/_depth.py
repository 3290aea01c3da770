"""Whether depth pays."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr

from ..data import Dataset
from ..fits import Fit
from ..inference import fit, suitable_chunk_rows
from ..layers import gp_layers
from ..likelihoods import GaussianNoise
from ..objectives import collapsed_bound, elbo
from ..programs import compiled
from ..typing import Array, Float
from ._deep import deep_gp
from ._shallow import sparse_gp_regression


@dataclass(frozen=True)
class DepthReport:
    """The bound of a deep model, averaged over samples, beside that of a model with one layer. `print` it."""

    num_layers: int
    deep_bound: float
    deep_error: float
    """The standard error of `deep_bound`, from the samples."""
    shallow_bound: float

    @property
    def depth_pays(self) -> bool:
        """Whether the deep bound is higher by more than its own uncertainty."""
        return self.deep_bound - 2.0 * self.deep_error > self.shallow_bound

    def __str__(self) -> str:
        advice = (
            "Depth pays."
            if self.depth_pays
            else "Depth doesn't pay on these data, or the deep fit isn't finished: train it longer, or use one layer, "
            "which is faster and easier to trust."
        )
        return (
            f"bound of {self.num_layers} layers {self.deep_bound:.1f} ± {self.deep_error:.1f}, "
            f"of one layer {self.shallow_bound:.1f}. {advice}"
        )


def compare_with_one_layer(fitted: Fit, data: Dataset, *, num_samples: int = 50, seed: int = 0) -> DepthReport:
    """Fit a model with one layer and as many inducing variables as the deep one's last layer, and compare the bounds.

    Both are lower bounds of the log evidence of the same targets, in standardised units, so the higher one explains
    the data better. For Gaussian noise the shallow fit is collapsed and takes seconds.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> engine = dgpax.inference.NaturalGradient(max_steps=50)
    >>> fitted = dgpax.fit(dgpax.deep_gp(data, 2, 8), data, "variational", engine=engine, progress=False)
    >>> dgpax.compare_with_one_layer(fitted, data).depth_pays  # not after 50 steps; print it for the numbers
    False
    """
    model = fitted.model
    own = list(gp_layers(model.layers).values())
    deep, error = _sampled_bound(fitted, data, num_samples, seed)
    num_inducing = own[-1].own_inducing().num_inducing
    if isinstance(model.likelihood, GaussianNoise):
        shallow = fit(sparse_gp_regression(data, num_inducing, seed=seed), data, "sparse", seed=seed, progress=False)
        bound = collapsed_bound(shallow.model, shallow.model.to_model_units(data)).total
    else:
        start = deep_gp(data, 1, num_inducing, likelihood=model.likelihood, seed=seed)
        shallow = fit(start, data, "variational", seed=seed, progress=False)
        bound = elbo(shallow.model, shallow.posterior, shallow.model.to_model_units(data)).total
    return DepthReport(len(own), float(deep), float(error), float(bound))


@compiled
def _sampled_bound(
    fitted: Fit, data: Dataset, num_samples: int, seed: int
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    scaled = fitted.model.to_model_units(data)
    chunk_rows = suitable_chunk_rows(None, 1)

    def one(key):
        return elbo(fitted.model, fitted.posterior, scaled, key=key, chunk_rows=chunk_rows).total

    values = jax.lax.map(one, jr.split(jr.key(seed), num_samples))
    return jnp.mean(values), jnp.std(values, ddof=1) / jnp.sqrt(num_samples)
