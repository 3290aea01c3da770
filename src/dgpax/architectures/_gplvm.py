"""The Bayesian GP-LVM: positions of rows in a space of few dimensions, and the function from there to the data."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..data import Dataset, identity_scaling, outputs_only, standardise
from ..distributions import Gaussian
from ..errors import InputError
from ..fits import AbstractFit, Fit
from ..inducing import Points, k_means
from ..inference import LatentInputs, Variational
from ..kernels import RBF
from ..layers import GPLayer, LatentVariables
from ..likelihoods import AbstractLikelihood, GaussianNoise
from ..model import DeepGP
from ..parameters import Positive, Real
from ..posteriors import AbstractLatents, Encoder, MeanField, RowLatents, optimal_posterior
from ..programs import compiled
from ..typing import Array, Float
from ._shallow import NOISE_START, VARIANCE_FLOOR, noise_start

POSITION_STDDEV = 0.3
WIDEST_ENCODER = 100


class GPLVMStart(NamedTuple):
    """What `fit` takes, in its order: `fit(*gplvm(y))`."""

    model: DeepGP
    data: Dataset
    method: LatentInputs | Variational


def gplvm(
    y,
    num_latents: int = 2,
    num_inducing: int = 50,
    *,
    likelihood: AbstractLikelihood | None = None,
    encoder: bool = False,
    seed: int = 0,
) -> GPLVMStart:
    """The Bayesian GP-LVM y_n = f(w_n) + noise, w_n ~ N(0, I) [Titsias & Lawrence 2010; FRAMEWORK, section 7.2.1].

    `y` is [N, P]; NaN are missing outputs. q(w_n) starts at the principal components of the standardised outputs,
    with numbers of its own for every row, or from a network on y_n (`encoder`), which also places new rows. The
    kernel is an ARD RBF, whose length scales tell which latent dimensions matter. Gaussian noise, the default, needs
    no samples.

    >>> import numpy as np
    >>> import dgpax
    >>> angle = np.linspace(0.0, 3.0, 30)
    >>> y = np.stack([np.cos(angle), np.sin(angle), angle], axis=1)
    >>> model, data, method = dgpax.gplvm(y, 1, 10)
    >>> engine = dgpax.inference.NaturalGradient(max_steps=50)
    >>> fitted = dgpax.fit(model, data, method, engine=engine, progress=False)
    >>> dgpax.latent_positions(fitted, data).mean.shape
    (30, 1)
    >>> dgpax.predict(dgpax.decoder(fitted), [[-1.0], [1.0]]).mean.shape
    (2, 3)
    """
    data = outputs_only(y)
    likelihood = GaussianNoise(noise_start(NOISE_START, data.y.dtype)) if likelihood is None else likelihood
    likelihood.check_targets(np.asarray(data.y))
    scaling = standardise(data)
    scores, lengthscales = _principal_components(scaling.outputs(data.y), num_latents)
    if not isinstance(likelihood, GaussianNoise):
        scaling = identity_scaling(0, data.num_outputs)
    kernel = RBF(lengthscales, Positive(jnp.ones((), data.y.dtype), floor=VARIANCE_FLOOR))
    points = Points(k_means(scores, num_inducing, seed))
    layer = GPLayer(kernel, likelihood.num_latents(data.num_outputs), inducing=points)
    model = DeepGP((LatentVariables(num_latents), layer), likelihood, scaling)
    scaled = model.to_model_units(data)
    latents = _encoder(scaled, scores, seed) if encoder else _rows(scores)
    return GPLVMStart(model, data, _method(model, scaled, scores, latents))


def latent_positions(fitted: AbstractFit, data: Dataset) -> Gaussian:
    """q(w_n), [N, Q], of the rows that a GP-LVM was fitted to, or with an encoder of any rows: `outputs_only(y)`."""
    latents, _ = _parts(fitted)
    if isinstance(latents, RowLatents) and data.rows is None and data.num_rows != latents.mean.shape[0]:
        raise InputError(
            f"The posterior has positions of the {latents.mean.shape[0]} rows it was fitted to; got {data.num_rows} "
            "rows. New rows are placed by an encoder: gplvm(y, encoder=True)."
        )
    return latents(fitted.model.to_model_units(data))


def decoder(fitted: AbstractFit) -> Fit:
    """The function of a fitted GP-LVM from latent positions to y, as a model of its own.

    For `predict` at positions, `predict_uncertain` at the means and variances of `latent_positions`, and the like.
    """
    _, posterior = _parts(fitted)
    num_latents, scaling = _num_latents(fitted.model), fitted.model.scaling
    if scaling is not None:
        unscaled = identity_scaling(num_latents, 0)
        scaling = dataclasses.replace(unscaled, y_mean=scaling.y_mean, y_scale=scaling.y_scale)
    model = DeepGP(fitted.model.layers[1:], fitted.model.likelihood, scaling)
    return Fit(model=model, posterior=posterior, report=fitted.report, num_inputs=num_latents, input_names=())


def _parts(fitted: AbstractFit) -> tuple[AbstractLatents, MeanField]:
    """What is believed about the positions, and about the function."""
    posterior = fitted.posterior if isinstance(fitted, Fit) else None
    if _num_latents(fitted.model) and fitted.num_inputs == 0 and isinstance(posterior, MeanField):
        latents, *others = posterior.blocks
        if isinstance(latents, AbstractLatents):
            return latents, MeanField(others)
    raise InputError("A fitted GP-LVM is needed, whose only inputs are latent: fit(*gplvm(y)).")


def _num_latents(model: DeepGP) -> int:
    first = model.layers[0]
    return first.num_latents if isinstance(first, LatentVariables) else 0


def _principal_components(y: Float[Array, "N P"], num_latents: int) -> tuple[Float[Array, "N Q"], Float[Array, " Q"]]:
    """Scores with the prior's variance, 1, and length scales with which distances are those of the data.

    Missing outputs stand at their mean, 0.
    """
    if num_latents < 1:
        raise InputError(f"gplvm(num_latents=...) must be at least 1; got {num_latents}.")
    values = np.nan_to_num(np.asarray(y))
    left, sizes, _ = np.linalg.svd(values - values.mean(axis=0), full_matrices=False)
    rank = int(np.sum(sizes > sizes[0] * max(values.shape) * np.finfo(values.dtype).eps))
    if rank < num_latents:
        raise InputError(
            f"gplvm(num_latents={num_latents}) needs rows that differ in at least that many directions; {len(values)} "
            f"row(s) of {values.shape[1]} output(s) differ in {rank}. Use fewer latents or more rows."
        )
    scores = np.sqrt(len(values)) * left[:, :num_latents]
    return jnp.asarray(scores, y.dtype), jnp.asarray(sizes[0] / sizes[:num_latents], y.dtype)


def _rows(scores: Float[Array, "N Q"]) -> RowLatents:
    return RowLatents(Real(scores), Positive(jnp.full_like(scores, POSITION_STDDEV)))


def _encoder(data: Dataset, scores: Float[Array, "N Q"], seed: int) -> Encoder:
    """As wide as the outputs, within reason, so that it can pass them on: principal components are linear in them."""
    width = min(max(20, data.num_outputs), WIDEST_ENCODER)
    network = Encoder.start(0, data.num_outputs, scores.shape[1], jr.key(seed), hidden=(width, width))
    return network.near(data, scores, POSITION_STDDEV)


def _method(model: DeepGP, data: Dataset, scores: Float[Array, "N Q"], latents: AbstractLatents):
    """With Gaussian noise, q(u) starts at the optimum for the positions where they start."""
    if not isinstance(model.likelihood, GaussianNoise):
        return Variational(MeanField.at_prior(model.layers, latents=[latents]))
    known = DeepGP(model.layers[1:], model.likelihood)
    (block,) = compiled(optimal_posterior)(known, Dataset(scores, jnp.nan_to_num(data.y))).blocks
    return LatentInputs(MeanField((latents, block)))
