"""Models with one layer."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..data import Dataset, Scaling, standardise
from ..errors import InputError, UnknownNameError
from ..inducing import Points, greedy_bound, greedy_variance, k_means
from ..kernels import RBF, AbstractKernel, MarkedWhite
from ..layers import GPLayer
from ..likelihoods import GaussianNoise
from ..model import DeepGP
from ..parameters import Positive, Real

NOISE_START = 0.1
GAP_START = 0.3
VARIANCE_FLOOR = 1e-7
"""Least noise and kernel variance: a constant output is then predicted to within a thousandth of its scale."""
EXACT_NOISE_FLOOR = 1e-10
"""Of exact regression in float64, which divides by the noise in no other way than through K + σ²I."""


def gp_regression(data: Dataset, kernel: AbstractKernel | None = None, *, gaps: Sequence[int] = ()) -> DeepGP:
    """A one-layer model for exact regression: standardised data, a shared ARD RBF unless another kernel is given.

    `gaps` are columns that mark missing inputs (`data.Encoding.gaps`): rows with gaps then have noise of their own, its
    variance learnt for every such column, as what is missing can't be predicted from.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> model = dgpax.gp_regression(data, dgpax.kernels.Matern52(0.5) + dgpax.kernels.Linear())
    >>> type(model.likelihood).__name__
    'GaussianNoise'
    """
    model = _one_layer(data, kernel, None)
    if not gaps:
        return model
    noise = noise_of_gaps(gaps, data.x.dtype)
    return eqx.tree_at(lambda model: model.layers[0].kernel, model, replace_fn=lambda kernel: kernel + noise)


def sparse_gp_regression(
    data: Dataset,
    num_inducing: int = 100,
    kernel: AbstractKernel | None = None,
    *,
    points: str = "k-means",
    train_points: bool = True,
    seed: int = 0,
) -> DeepGP:
    """A one-layer model with inducing points for sparse regression.

    `points` says where they start: "k-means" (cluster centres), "variance" (rows that are least determined by
    those already chosen), "bound" (rows that raise the collapsed bound the most). They are trained unless
    `train_points` is False.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> model = dgpax.sparse_gp_regression(data, num_inducing=5)
    >>> model.layers[0].inducing.locations.value.shape
    (5, 1)
    """
    start = _one_layer(data, kernel, None)
    scaled = start.to_model_units(data)
    prior = start.layers[0].independent_kernel()
    if points == "k-means":
        locations = k_means(scaled.x, num_inducing, seed)
    elif points == "variance":
        locations = greedy_variance(prior, scaled.x, num_inducing)
    elif points == "bound":
        locations = greedy_bound(prior, scaled.x, scaled.y, NOISE_START, num_inducing, seed=seed)
    else:
        raise UnknownNameError(f"points={points!r} isn't known. There are: k-means, variance, bound.")
    return _one_layer(data, kernel, Points(Real(locations, trainable=train_points)))


def _one_layer(data: Dataset, kernel: AbstractKernel | None, inducing: Points | None) -> DeepGP:
    check_data(data)
    scaling = standardise(data)
    kernel = default_kernel(scaling, data.x.dtype) if kernel is None else kernel
    layer = GPLayer(kernel, num_outputs=data.num_outputs, inducing=inducing)
    floor = VARIANCE_FLOOR if inducing is not None or data.x.dtype == jnp.float32 else EXACT_NOISE_FLOOR
    return DeepGP(layer, GaussianNoise(noise_start(NOISE_START, data.x.dtype, floor)), scaling)


def noise_of_gaps(gaps: Sequence[int], dtype) -> AbstractKernel:
    """Independent noise at rows with gaps: the standardised columns that mark them are positive there, and nowhere
    else."""
    return MarkedWhite(Positive(jnp.full(len(gaps), GAP_START, dtype), floor=VARIANCE_FLOOR)).on(*gaps)


def check_data(data: Dataset) -> None:
    """Raise an error that says what to do if this isn't data with rows."""
    if not isinstance(data, Dataset):
        raise InputError(f"A Dataset is needed; got {type(data).__name__}. Make one: dataset(x, y).")
    if data.num_rows == 0:
        raise InputError("Found a dataset with 0 sample(s) while a minimum of 1 is required.")


def noise_start(value: float, dtype, floor: float = VARIANCE_FLOOR) -> Positive:
    """A noise variance with a floor that leaves room for noise-free data."""
    return Positive(jnp.asarray(value, dtype), floor=floor)


def default_kernel(scaling: Scaling, dtype) -> RBF:
    """An ARD RBF with length scale √D in every standardised column, D the number of columns that vary.

    The typical distance of two rows is then about √2 length scales, and constant columns change nothing.
    """
    num_varying = max(1, int(np.sum(~np.asarray(scaling.x_constant))))
    lengthscales = jnp.asarray(np.full(scaling.x_constant.shape, np.sqrt(num_varying)), dtype)
    return RBF(lengthscales, Positive(jnp.asarray(1.0, dtype), floor=VARIANCE_FLOOR))
