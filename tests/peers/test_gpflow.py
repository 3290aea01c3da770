"""The same parameters give the same numbers in GPflow, for all kernels and inducing variables that both have."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from dgpax import DeepGP, GPLayer
from dgpax.covariances import Kuu
from dgpax.data import Dataset
from dgpax.inducing import Multiscale, OutputPoints, Patches, Points
from dgpax.kernels import LMC, RBF, Convolutional
from dgpax.likelihoods import GaussianNoise
from dgpax.objectives import elbo
from dgpax.posteriors import GaussianBlock, InducingOutputs, MeanField, to_unwhitened
from dgpax.propagate import outputs_of

WORKER = Path(__file__).with_name("gpflow_worker.py")

pytestmark = pytest.mark.peers

N, M, D, Q, P = 8, 5, 2, 2, 3
NOISE, TOLERANCE = 0.1, 1e-8
LENGTHSCALE, VARIANCE = np.array([[0.7, 0.9], [0.5, 1.2], [0.9, 0.6]]), np.array([1.3, 0.8, 1.7])
LOCATIONS = np.stack([np.linspace(-1, 1, M), np.array([0.5, -0.8, 0.1, 0.9, -0.4])], axis=1)
SEPARATE = np.stack([LOCATIONS, 0.9 * LOCATIONS[::-1] + 0.1, 1.1 * LOCATIONS - 0.1])
SCALES = np.linspace(0.1, 0.6, M * D).reshape(M, D)
IMAGE_SHAPE, PATCH_SHAPE = (3, 4), (2, 2)
PATCH_LENGTHSCALE, PATCH_WEIGHTS = np.array([0.9, 1.4, 1.1, 1.7]), np.array([1.0, 0.5, -0.3, 0.8, 1.2, 0.7])
PATCHES = np.concatenate([LOCATIONS, LOCATIONS[[2, 4, 0, 1, 3]]], axis=1)
MIXING = np.array([[1.0, 0.3, 0.0], [-0.5, 0.8, 0.2], [0.2, 1.1, -0.9]])


class Case(NamedTuple):
    """A layer of dgpax, and how GPflow's worker is told to build the same."""

    layer: GPLayer
    peer: dict
    num_inputs: int = D


def _single_output() -> Case:
    layer = GPLayer(RBF(LENGTHSCALE[0], VARIANCE[0]), inducing=Points(LOCATIONS))
    return Case(layer, _peer("single", "points", 1))


def _multiscale() -> Case:
    """GPflow's scales s are those of the window and the kernel together: w² = (ℓ + s)² − ℓ²."""
    widths = np.sqrt((LENGTHSCALE[0] + SCALES) ** 2 - LENGTHSCALE[0] ** 2)
    layer = GPLayer(RBF(LENGTHSCALE[0], VARIANCE[0]), inducing=Multiscale(LOCATIONS, widths))
    return Case(layer, _peer("single", "multiscale", 1) | {"scales": SCALES})


def _convolutional() -> Case:
    """Both take the mean over patches, with weights."""
    base = RBF(PATCH_LENGTHSCALE, VARIANCE[0])
    kernel = Convolutional(base, IMAGE_SHAPE, PATCH_SHAPE, weights=PATCH_WEIGHTS)
    peer = {"image_shape": IMAGE_SHAPE, "patch_shape": PATCH_SHAPE, "weights": PATCH_WEIGHTS}
    peer |= {"lengthscale": PATCH_LENGTHSCALE[None], "locations": PATCHES}
    return Case(GPLayer(kernel, inducing=Patches(PATCHES)), _peer("convolutional", "patches", 1) | peer, 12)


def _independent(kernel: str, inducing: str) -> Case:
    count = 1 if kernel == "shared" else P
    ours = RBF(LENGTHSCALE[0], VARIANCE[0]) if kernel == "shared" else RBF(LENGTHSCALE, VARIANCE)
    peer = _peer(kernel, inducing, count)
    return Case(GPLayer(ours, P, inducing=Points(peer["locations"])), peer)


def _latent(inducing: str) -> Case:
    mixing, peer = MIXING[:, :Q], _peer("lmc", inducing, Q)
    kernel = LMC(RBF(LENGTHSCALE[:Q], VARIANCE[:Q]), mixing)
    return Case(GPLayer(kernel, P, inducing=Points(peer["locations"])), peer | {"mixing": mixing})


def _in_outputs() -> Case:
    layer = GPLayer(LMC(RBF(LENGTHSCALE, VARIANCE), MIXING), P, inducing=OutputPoints(LOCATIONS, P))
    return Case(layer, _peer("lmc", "points", P) | {"mixing": MIXING})


def _peer(kernel: str, inducing: str, count: int) -> dict:
    locations = SEPARATE[: Q if kernel == "lmc" else P] if inducing == "separate" else LOCATIONS
    words = {"kernel": kernel, "inducing": inducing, "locations": locations}
    return words | {"lengthscale": LENGTHSCALE[:count], "variance": VARIANCE[:count]}


CASES = {
    "single output": _single_output,
    "multiscale": _multiscale,
    "convolutional": _convolutional,
    "shared kernel": partial(_independent, "shared", "shared"),
    "shared kernel, separate points": partial(_independent, "shared", "separate"),
    "separate kernels": partial(_independent, "separate", "shared"),
    "separate kernels and points": partial(_independent, "separate", "separate"),
    "latent points": partial(_latent, "shared"),
    "separate latent points": partial(_latent, "separate"),
    "latent points by GPflow's fallback": partial(_latent, "fallback"),
    "points in outputs": _in_outputs,
}


def _posterior(layer: GPLayer, rng) -> MeanField:
    blocks, size = layer.processes().num_blocks(layer.num_outputs), layer.own_inducing().num_inducing
    root = np.tril(0.3 * rng.normal(size=(blocks, size, size))) + 0.5 * np.eye(size)
    return MeanField((GaussianBlock(rng.normal(size=(blocks, size)), root),))


def _as_gpflow_whitens(case: Case, posterior: MeanField) -> dict:
    """GPflow lets outputs run fastest where all are correlated, so that its Cholesky factor is another one."""
    if not isinstance(case.layer.inducing, OutputPoints):
        block = posterior.blocks[0]
        assert isinstance(block, GaussianBlock)
        return {"mean": block.mean.value, "root": block.root.value}
    order = np.arange(P * M).reshape(P, M).T.ravel()
    (q,) = to_unwhitened(posterior, (case.layer,))
    assert isinstance(q, InducingOutputs)
    prior = np.asarray(Kuu(case.layer.inducing, case.layer.kernel).to_dense()[0])[np.ix_(order, order)]
    whiten = np.linalg.inv(np.linalg.cholesky(prior))
    root = whiten @ np.asarray(q.root)[0][order]
    return {"mean": (whiten @ np.asarray(q.mean)[0][order])[None], "root": np.linalg.cholesky(root @ root.T)[None]}


class Problem(NamedTuple):
    """A case with data and a posterior."""

    case: Case
    posterior: MeanField
    data: Dataset
    x_new: np.ndarray


@pytest.fixture(scope="module")
def problems() -> dict[str, Problem]:
    rng = np.random.default_rng(0)

    def problem(case: Case) -> Problem:
        x, x_new = rng.uniform(-1, 1, size=(2, N, case.num_inputs))
        data = Dataset(jnp.asarray(x), jnp.asarray(rng.normal(size=(N, case.layer.num_outputs))))
        return Problem(case, _posterior(case.layer, rng), data, x_new)

    return {name: problem(build()) for name, build in CASES.items()}


@pytest.fixture(scope="module")
def theirs(problems, tmp_path_factory):
    """GPflow's answers, all from one process."""
    given = {}
    for name, (case, posterior, data, x_new) in problems.items():
        parts = {"x": data.x, "y": data.y, "x_new": x_new, "noise_variance": NOISE} | case.peer
        parts |= _as_gpflow_whitens(case, posterior)
        given |= {f"{name}.{quantity}": np.asarray(value) for quantity, value in parts.items()}
    folder = tmp_path_factory.mktemp("gpflow")
    source, target = folder / "cases.npz", folder / "answers.npz"
    np.savez(source, **given)
    done = subprocess.run(
        [os.environ["DGPAX_PEER_PYTHON"], WORKER, source, target], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(np.load(target))


@eqx.filter_jit
def ours(layer: GPLayer, posterior: MeanField, data: Dataset, x_new):
    """The bound and all that GPflow's `predict_f` can be asked."""
    carry = posterior.begin((layer,))
    outputs = outputs_of(0, layer, posterior, x_new, carry)
    marginal = outputs.marginal()
    joint = {
        "over_inputs": outputs.over_inputs(),
        "over_outputs": outputs.over_outputs(),
        "over_both": outputs.over_both(),
    }
    answers = {name: distribution.covariance for name, distribution in joint.items()}
    bound = elbo(DeepGP(layer, GaussianNoise(NOISE)), posterior, data).total
    return answers | {"elbo": bound, "mean": marginal.mean, "marginal": marginal.variance}


@pytest.mark.parametrize("name", CASES)
def test_gpflow_agrees(name, problems, theirs):
    case, posterior, data, x_new = problems[name]
    answers = ours(case.layer, posterior, data, jnp.asarray(x_new))
    for quantity, value in answers.items():
        expected = theirs[f"{name}.{quantity}"]
        assert value.shape == expected.shape
        np.testing.assert_allclose(value, expected, rtol=TOLERANCE, atol=TOLERANCE, err_msg=quantity)
