"""Fits of every kind that a file can hold, none of them trained, for the tests of saved models."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from contracts.test_covariances import PAIRS
from contracts.test_kernels import KERNELS, wave, with_squares
from contracts.test_kernels import build as build_kernel
from contracts.test_likelihoods import LIKELIHOODS
from parts import fit_of

import dgpax
from dgpax import DeepGP, Fit, GPLayer
from dgpax.inducing import Points
from dgpax.inference import FitReport
from dgpax.kernels import LMC, RBF, AbstractKernel, AbstractMultiOutputKernel, ImageToImage
from dgpax.layers import Append, LatentVariables
from dgpax.likelihoods import GaussianNoise
from dgpax.means import Constant, Identity, Zero
from dgpax.parameters import GammaPrior, Positive, cast, partition
from dgpax.posteriors import (
    AbstractPosterior,
    Chain,
    Coupled,
    Encoder,
    ExactPosterior,
    MeanField,
    Particles,
    PointsAsLocations,
    RowLatents,
    optimal_posterior,
)

X = np.linspace(-1.0, 1.0, 14).reshape(7, 2)

OWN = (wave, with_squares)

REPORT = FitReport(
    inference="Variational",
    engine="None",
    num_rows=3,
    num_parameters=2,
    steps=0,
    seconds=0.5,
    objective_start=float("nan"),
    objective_end=-np.inf,
    stopped_because="\u201cthere\u201d was nothing\n",
    converged=True,
    unfinished=False,
    interrupted=False,
    resumed_at=(25,),
    rejected_steps=0,
    largest_jitter=1e-300,
    clipped_variances=0,
    constant_columns=("a \U0001f600 \u0000 column",),
    notes=(),
    history=np.array([np.nan, -0.0, 1e-310]),
)


def with_posterior(model: DeepGP, latents=(), num_inputs: int = 2) -> Fit:
    """A fit that nobody trained: a mean-field posterior away from the prior."""
    posterior = MeanField.at_prior(model.layers, inner_scale=0.3, latents=latents)
    return fit_of(model, moved(posterior), REPORT, num_inputs)


def moved(posterior: AbstractPosterior) -> AbstractPosterior:
    rng = np.random.default_rng(0)
    trained, rest = partition(posterior)
    moved = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf) + 0.1 * rng.normal(size=leaf.shape)), trained)
    return eqx.combine(moved, rest)


def one_layer(kernel: AbstractKernel, inducing=None, num_outputs: int = 1, likelihood=None, num_inputs=2) -> Fit:
    inducing = Points(np.linspace(-1, 1, 8).reshape(4, 2)) if inducing is None else inducing
    layer = GPLayer(kernel, num_outputs, Zero(), inducing)
    return with_posterior(DeepGP(layer, likelihood or GaussianNoise(0.1)), num_inputs=num_inputs)


def _num_outputs(kernel: AbstractKernel) -> int:
    if isinstance(kernel, LMC):
        return 3
    if isinstance(kernel, ImageToImage):
        return 6
    return 2 if isinstance(kernel, AbstractMultiOutputKernel) else 1


def _of_pair(pair) -> Fit:
    inducing, kernel = PAIRS[pair]()
    num_inputs = 1 if pair[0].__name__ == "Fourier" else 2
    return one_layer(kernel, inducing, _num_outputs(kernel), num_inputs=num_inputs)


def _of_likelihood(kind) -> Fit:
    row = LIKELIHOODS[kind]()
    return one_layer(RBF(0.7), num_outputs=row.likelihood.num_latents(row.y.shape[1]), likelihood=row.likelihood)


def _latent(latents) -> Fit:
    layers = [
        LatentVariables(1),
        GPLayer(RBF(0.8), 2, Constant(0.3), Points(np.ones((3, 3)) * np.arange(3.0)[:, None])),
    ]
    last = GPLayer(
        RBF(Positive(0.9, prior=GammaPrior(2.0, 1.0))), 1, Zero(), Points(np.linspace(0, 1, 8).reshape(4, 2))
    )
    return with_posterior(DeepGP([*layers, last], GaussianNoise(0.1)), [latents])


def deep() -> Fit:
    z = np.linspace(-1, 1, 8).reshape(4, 2)
    layers = [GPLayer(RBF(0.8), 2, Identity(), Points(z)), Append()]
    return with_posterior(
        DeepGP([*layers, GPLayer(RBF(1.0), 1, Zero(), Points(np.hstack([z, z])))], GaussianNoise(0.1))
    )


def few_rows() -> dgpax.Dataset:
    return dgpax.dataset(X, np.sin(3 * X[:, 0]) + X[:, 1])


def _conjugate(inference: str) -> Fit:
    data = few_rows()
    model = dgpax.gp_regression(data) if inference == "exact" else dgpax.sparse_gp_regression(data, 4)
    solve = ExactPosterior.condition if inference == "exact" else optimal_posterior
    return fit_of(model, eqx.filter_jit(solve)(model, model.to_model_units(data)), REPORT, 2, input_names=("a", "b"))


def _coupled(family: Any = Coupled) -> Fit:
    model = deep().model
    posterior = family.at_prior(model.layers, inner_scale=0.3)
    return fit_of(model, moved(posterior), REPORT, 2)


def _locations(drawn: bool) -> Fit:
    first, _, last = deep().model.layers
    model = DeepGP([first, dataclasses.replace(last, inducing=first.inducing)], GaussianNoise(0.1))
    posterior = PointsAsLocations.at_prior(model.layers)
    return fit_of(model, posterior.layerwise(jr.key(0), (5,)) if drawn else moved(posterior), REPORT, 2)


def _particles() -> Fit:
    blocks = (jr.normal(jr.key(0), (5, 2, 4)), None, jr.normal(jr.key(1), (5, 1, 4)))
    return fit_of(deep().model, Particles(blocks), REPORT, 2)


FITS = {
    **{f"kernel {kind.__name__}": lambda kind=kind: one_layer(build_kernel(kind)) for kind in KERNELS},
    **{f"likelihood {kind.__name__}": lambda kind=kind: _of_likelihood(kind) for kind in LIKELIHOODS},
    **{f"{u.__name__} of {k.__name__}": lambda pair=(u, k): _of_pair(pair) for u, k in PAIRS},
    "latents of rows": lambda: _latent(RowLatents.start(7, 1, jnp.float64)),
    "latents by an encoder": lambda: _latent(Encoder.start(2, 1, 1, jr.key(0), hidden=(4,))),
    "deep": deep,
    "coupled": _coupled,
    "chain": lambda: _coupled(Chain),
    "locations": lambda: _locations(drawn=False),
    "draws of locations": lambda: _locations(drawn=True),
    "particles": _particles,
    "exact": lambda: _conjugate("exact"),
    "collapsed": lambda: _conjugate("sparse"),
    "float32": lambda: cast(deep(), jnp.float32),
}


def same(a, b) -> bool:
    """Whether two values are the same to the last bit, types included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, jax.Array | np.ndarray | np.generic):
        weak = isinstance(a, jax.Array) and a.weak_type != b.weak_type
        return (
            not weak
            and a.dtype == b.dtype
            and a.shape == b.shape
            and np.asarray(a).tobytes() == np.asarray(b).tobytes()
        )
    if dataclasses.is_dataclass(a):
        return all(same(getattr(a, field.name), getattr(b, field.name)) for field in dataclasses.fields(a))
    if isinstance(a, dict):
        return list(a) == list(b) and same(list(a.values()), list(b.values()))
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    return a is b or a == b or (a != a and b != b)
