"""Hyperparameters and the first inducing points: a sparse GP whose points are rows of the data."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..architectures import deep_gp, gp_regression, sparse_gp_regression
from ..data import Dataset
from ..errors import InputError
from ..inducing import Points, distinct_rows
from ..inference import Fit, NaturalGradient, fit
from ..kernels import AbstractKernel, AbstractStationary
from ..likelihoods import AbstractLikelihood, GaussianNoise
from ..model import DeepGP
from ..parameters import Real, fixed
from ..typing import Array, Bool, Float, Int, Scalar
from ._covariance import Stationary
from ._selection import greedy_rows

ROUNDS = 2
"""Times that points are chosen and hyperparameters trained in turn."""
VARIATIONAL_STEPS = 500
LEAST_NOISE = 1e-6
"""Of the variance of the targets: below it, F_V is lost in rounding."""


class Initial(NamedTuple):
    """A fitted one-layer GP, its inducing points as row numbers, which rows may be such, and if the noise was given."""

    fitted: Fit
    rows: Int[Array, " M"] | None
    selectable: Bool[Array, " N"]
    noise_known: bool

    @property
    def kernel(self) -> AbstractStationary:
        return self.fitted.model.layers[0].kernel

    @property
    def noise_variance(self) -> Scalar:
        """Never less than LEAST_NOISE: a limit that only data without noise reach. 1 for other likelihoods."""
        if not isinstance(self.fitted.model.likelihood, GaussianNoise):
            return jnp.ones_like(self.kernel.variance.value)
        return jnp.maximum(_noise_variance(self.fitted.model), LEAST_NOISE)


def initial_gp(
    data: Dataset,
    num_inducing: int | None,
    *,
    kernel: AbstractKernel | None = None,
    noise_variance: float | None = None,
    likelihood: AbstractLikelihood | None = None,
    num_candidates: int = 500,
    seed: int = 0,
) -> Initial:
    """Kernel and noise by maximising F_V, or the evidence where there are no inducing points [STRIDE, section 4.2].

    Points and hyperparameters are chosen in turn; of rows that coincide, only the first can be an inducing point.
    With a likelihood other than Gaussian noise it is a variational GP, and points leave little of its variance.
    """
    selectable = _selectable(data, num_inducing)
    _check(num_inducing, kernel, noise_variance, likelihood)
    if likelihood is not None:
        return _variational_gp(data, num_inducing, num_candidates, kernel, likelihood, selectable, seed)
    known = noise_variance is not None
    if num_inducing is None:
        model = _with_noise(gp_regression(data, kernel), data, noise_variance)
        return Initial(fit(model, data, "exact", progress=False), None, selectable, known)
    start = sparse_gp_regression(data, num_inducing, kernel, train_points=False, seed=seed)
    fitted = fit(_with_noise(start, data, noise_variance), data, "sparse", progress=False)
    scaled = start.to_model_units(data)
    for key in jr.split(jr.key(seed), ROUNDS):
        noise = _noise_variance(fitted.model)
        rows = _greedy_rows(fitted, scaled.x, scaled.y, noise, selectable, num_inducing, num_candidates, key)
        fitted = fit(_with_points(fitted.model, scaled.x[rows]), data, "sparse", progress=False)
    return Initial(fitted, rows, selectable, known)


def _variational_gp(data, num_inducing, num_candidates, kernel, likelihood, selectable, seed: int) -> Initial:
    model = deep_gp(data, 1, num_inducing, likelihood=likelihood, seed=seed)
    if kernel is not None:
        model = eqx.tree_at(lambda m: m.layers[0].kernel, model, kernel)
    engine = NaturalGradient(max_steps=VARIATIONAL_STEPS)
    fitted = fit(model, data, "variational", engine=engine, seed=seed, progress=False)
    x = fitted.model.to_model_units(data).x
    nothing, one = jnp.zeros_like(x[:, :1]), jnp.ones((), x.dtype)
    rows = _greedy_rows(fitted, x, nothing, one, selectable, num_inducing, num_candidates, jr.key(seed))
    return Initial(fitted, rows, selectable, noise_known=True)


def _greedy_rows(fitted: Fit, x, y, noise_variance, selectable, num_inducing, num_candidates, key):
    """Inducing points for a fitted one-layer GP."""
    return greedy_rows(
        Stationary(fitted.model.layers[0].kernel), x[None], y, noise_variance, selectable,
        num_inducing=num_inducing, num_candidates=num_candidates, key=key,
    )  # fmt: skip


def check_initial(initial: Initial, data: Dataset, num_inducing: int | None) -> None:
    """Raise an error if this one-layer GP is of other data or has another number of inducing points."""
    points = None if initial.rows is None else initial.rows.shape[0]
    if (initial.selectable.shape[0], points) != (data.num_rows, num_inducing):
        raise InputError(
            f"initial has {initial.selectable.shape[0]} rows and {points} inducing points; the data has "
            f"{data.num_rows}, and num_inducing is {num_inducing}. Leave initial out to train a new one."
        )


def _selectable(data: Dataset, num_inducing: int | None) -> Bool[Array, " N"]:
    distinct = distinct_rows(data.x)
    if num_inducing is not None and not 1 <= num_inducing <= len(distinct):
        raise InputError(
            f"num_inducing must lie between 1 and the number of distinct rows, {len(distinct)} of {data.num_rows}; "
            f"got {num_inducing}. Ask for fewer, or for none at all with num_inducing=None."
        )
    selectable = np.zeros(data.num_rows, bool)
    selectable[distinct] = True
    return jnp.asarray(selectable)


def _check(num_inducing, kernel, noise_variance, likelihood) -> None:
    if kernel is not None and not isinstance(kernel, AbstractStationary):
        raise InputError(f"STRIDE's layers need a stationary kernel (RBF, Matern32, …); got {type(kernel).__name__}.")
    if noise_variance is not None and not noise_variance > 0:
        raise InputError(
            f"The noise variance must be positive; got {noise_variance}. F_V divides by it: for data without noise "
            f"give a small one, or None to have it estimated (at least {LEAST_NOISE:g} of the variance of the targets)."
        )
    if likelihood is not None and noise_variance is not None:
        raise InputError(
            f"noise_variance is that of Gaussian noise, which {type(likelihood).__name__} doesn't have: leave out one "
            "of noise_variance and likelihood."
        )
    if isinstance(likelihood, GaussianNoise):
        raise InputError("Gaussian noise is integrated out: leave likelihood out. noise_variance=... fixes its size.")
    if likelihood is not None and num_inducing is None:
        raise InputError(f"{type(likelihood).__name__} needs inducing points, whose values are sampled.")


def _with_noise(model: DeepGP, data: Dataset, noise_variance: float | None) -> DeepGP:
    """The model with this noise variance, in raw units, fixed; None leaves it to be trained."""
    if noise_variance is None:
        return model
    scale = jnp.ones(()) if model.scaling is None else jnp.mean(model.scaling.y_scale)
    noise = fixed(jnp.asarray(noise_variance / scale**2, data.x.dtype))
    return eqx.tree_at(lambda m: m.likelihood, model, GaussianNoise(noise))


def _noise_variance(model: DeepGP) -> Scalar:
    likelihood = model.likelihood
    assert isinstance(likelihood, GaussianNoise)  # noqa: S101
    return likelihood.noise_variance.value


def _with_points(model: DeepGP, locations: Float[Array, "M D"]) -> DeepGP:
    return eqx.tree_at(lambda m: m.layers[0].inducing, model, Points(Real(locations, trainable=False)))
