"""Several outputs: the four covariances, the limits, and where inducing variables may live."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import dgpax
from dgpax import DeepGP, GPLayer
from dgpax.covariances import Kuf, Kuu, SharedProcesses
from dgpax.errors import InputError
from dgpax.inducing import OutputPairs, OutputPoints, Points
from dgpax.inference import NaturalGradient
from dgpax.kernels import LMC, RBF, Matern32, ProcessConvolution, Separate
from dgpax.likelihoods import GaussianNoise
from dgpax.means import Constant
from dgpax.objectives import elbo
from dgpax.posteriors import GaussianBlock, MeanField
from dgpax.propagate import outputs_of

pytestmark = pytest.mark.slow

P, M, N, D = 3, 4, 5, 1


def _kernel(name):
    W = jnp.asarray([[1.0, 0.3], [-0.5, 0.8], [0.2, 1.1]])
    return {
        "independent": lambda: RBF(jnp.asarray([[0.5], [0.8], [1.2]]), jnp.asarray([1.0, 2.0, 0.5])),
        "separate": lambda: Separate(RBF(0.5), Matern32(0.8), RBF(1.2, 2.0)),
        "lmc": lambda: LMC(Separate(RBF(0.6), Matern32(0.9)), W),
        "full-rank lmc": lambda: LMC(Separate(RBF(0.6), Matern32(0.9), RBF(0.3)), jnp.tril(jnp.ones((P, P)))),
        "icm": lambda: LMC(RBF(0.7), W),
        "convolution": lambda: ProcessConvolution(
            jnp.asarray([[0.02], [0.05], [0.03]]),
            jnp.asarray([[0.0], [0.5], [-0.3]]),
            jnp.asarray([1.0, -0.7, 2.0]),
            0.2,
        ),
    }[name]()


def _inducing(name, rng):
    z = jnp.asarray(rng.uniform(-1, 1, size=(M, D)))
    return {
        "points": lambda: Points(z),
        "separate": lambda: Points(jnp.stack([z, z + 0.1])),  # one set per latent process
        "outputs": lambda: OutputPoints(z, P),
        "pairs": lambda: OutputPairs(z, jnp.asarray([0, 2, 1, 0])),
    }[name]()


CASES = [
    ("independent", "points"),
    ("separate", "points"),
    ("lmc", "points"),
    ("lmc", "separate"),
    ("full-rank lmc", "outputs"),
    ("full-rank lmc", "pairs"),
    ("icm", "points"),
    ("convolution", "points"),
    ("convolution", "outputs"),
    ("convolution", "pairs"),
]


def _layer_and_posterior(case, rng):
    layer = GPLayer(_kernel(case[0]), P, Constant(jnp.asarray([0.1, 0.2, 0.3])), _inducing(case[1], rng))
    blocks, size = layer.processes().num_blocks(P), layer.own_inducing().num_inducing
    root = jnp.asarray(np.tril(rng.normal(size=(blocks, size, size)) * 0.3))
    return layer, MeanField((GaussianBlock(jnp.asarray(rng.normal(size=(blocks, size))), root),))


def _dense(layer, posterior, x):
    """All outputs and rows by brute force: f | v for the joint Gaussian of u and f, then v from q."""
    kernel, inducing, block = layer.kernel, layer.own_inducing(), posterior.blocks[0]
    rows = x[None]
    if isinstance(layer.processes(), SharedProcesses):
        W, gram = None, np.asarray(kernel.cross(rows, rows))
    elif layer.processes().mixing is None:
        W, gram = np.eye(P), np.broadcast_to(kernel.gram(rows), (P, N, N))
    else:
        W, gram = np.asarray(kernel.mixing.value), np.broadcast_to(kernel.latent.gram(rows), (kernel.num_latents, N, N))
    Kuu_, Kuf_ = np.asarray(Kuu(inducing, kernel).to_dense()), np.asarray(Kuf(inducing, kernel, rows))
    mean, root = np.asarray(block.mean.value), np.asarray(block.root.value)
    if W is None:
        cross = np.moveaxis(Kuf_, 0, 1).reshape(Kuf_.shape[1], P * N)
        L = np.linalg.cholesky(Kuu_[0])
        A = np.linalg.solve(L, cross).T
        prior = gram.reshape(P * N, P * N)
        cov = prior - A @ A.T + A @ root[0] @ root[0].T @ A.T
        return (A @ mean[0]).reshape(P, N), cov.reshape(P, N, P, N)
    latent_mean, latent_cov = [], []
    for q in range(len(gram)):
        L = np.linalg.cholesky(np.broadcast_to(Kuu_, (len(gram), *Kuu_.shape[1:]))[q])
        A = np.linalg.solve(L, np.broadcast_to(Kuf_, (len(gram), *Kuf_.shape[1:]))[q]).T
        latent_mean.append(A @ mean[q])
        latent_cov.append(gram[q] - A @ A.T + A @ root[q] @ root[q].T @ A.T)
    return W @ np.asarray(latent_mean), np.einsum("pl,ql,lnm->pnqm", W, W, np.asarray(latent_cov))


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_the_four_covariances_agree_with_brute_force(case, rng):
    layer, posterior = _layer_and_posterior(case, rng)
    x = jnp.asarray(rng.uniform(-1, 1, size=(N, D)))
    mean, cov = _dense(layer, posterior, x)
    mean = mean.T + np.array([0.1, 0.2, 0.3])
    carry = posterior.begin((layer,))
    outputs = outputs_of(0, layer, posterior, x, carry)
    results: list[Any] = [outputs.marginal(), outputs.over_inputs(), outputs.over_outputs(), outputs.over_both()]
    for result in results:
        np.testing.assert_allclose(result.mean, mean, atol=1e-9)
    np.testing.assert_allclose(results[0].variance, np.einsum("pnpn->np", cov), atol=1e-9)
    np.testing.assert_allclose(results[1].covariance, np.einsum("pnpm->pnm", cov), atol=1e-9)
    np.testing.assert_allclose(results[2].covariance, np.einsum("pnqn->npq", cov), atol=1e-9)
    np.testing.assert_allclose(results[3].covariance, np.einsum("pnqm->npmq", cov), atol=1e-9)


@pytest.mark.parametrize("name", ["lmc", "icm", "convolution"])
def test_multi_output_kernels_are_covariances(name, rng):
    kernel = _kernel(name)
    x = jnp.asarray(rng.uniform(-1, 1, size=(1, N, D)))
    cross = np.asarray(kernel.cross(x, x))
    flat = cross.reshape(P * N, P * N)
    np.testing.assert_allclose(flat, flat.T, atol=1e-12)
    assert np.linalg.eigvalsh(flat).min() > -1e-10
    np.testing.assert_allclose(kernel.diag(x), np.einsum("pnpn->pn", cross), atol=1e-12)
    np.testing.assert_allclose(kernel.over_outputs(x), np.einsum("pnqn->npq", cross), atol=1e-12)


def test_lmc_with_identity_mixing_is_separate_kernels(rng):
    x = jnp.asarray(rng.uniform(-1, 1, size=(N, D)))
    z = Points(jnp.asarray(rng.uniform(-1, 1, size=(M, D))))
    separate = Separate(RBF(0.5), Matern32(0.8), RBF(1.2, 2.0))
    layers = [GPLayer(separate, P, inducing=z), GPLayer(LMC(separate, jnp.eye(P)), P, inducing=z)]
    posterior = MeanField((GaussianBlock(jnp.ones((P, M)), jnp.tril(jnp.ones((P, M, M)))),))
    a, b = (outputs_of(0, layer, posterior, x, posterior.begin((layer,))).over_both() for layer in layers)
    np.testing.assert_allclose(a.covariance, b.covariance, atol=1e-12)
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-12)


def test_icm_is_lmc_with_equal_kernels(rng):
    x = jnp.asarray(rng.uniform(-1, 1, size=(1, N, D)))
    W = jnp.asarray(rng.normal(size=(P, 2)))
    icm, lmc = LMC(RBF(0.7), W), LMC(Separate(RBF(0.7), RBF(0.7)), W)
    np.testing.assert_allclose(icm.cross(x, x), lmc.cross(x, x), atol=1e-12)


def test_convolution_agrees_with_numerical_integration():
    kernel = _kernel("convolution")
    s = np.linspace(-4, 4, 3201)
    step = s[1] - s[0]
    x = np.array([[-0.4], [0.3]])
    g = np.exp(-0.5 * (s[:, None] - s[None, :]) ** 2 / 0.2**2)
    widths, delays, amplitudes = (np.asarray(v.value) for v in (kernel.width, kernel.delay, kernel.amplitude))

    def window(p, at):
        w = widths[p, 0]
        return amplitudes[p] * np.exp(-0.5 * ((at - delays[p, 0] - s) / w) ** 2) / (w * np.sqrt(2 * np.pi))

    cross = np.asarray(kernel.cross(jnp.asarray(x)[None], jnp.asarray(x)[None]))
    latent = np.asarray(kernel.latent_cross(jnp.asarray(x)[None], jnp.asarray(x)[None]))
    for p in range(P):
        for q in range(P):
            expected = window(p, x[0, 0]) @ g @ window(q, x[1, 0]) * step**2
            np.testing.assert_allclose(cross[p, 0, q, 1], expected, atol=1e-8)
        direct = np.exp(-0.5 * (x[0, 0] - s) ** 2 / 0.2**2) @ window(p, x[1, 0]) * step
        np.testing.assert_allclose(latent[p, 0, 1], direct, atol=1e-8)


@pytest.mark.parametrize(
    "case", [("lmc", "points"), ("full-rank lmc", "outputs"), ("convolution", "points")], ids="-".join
)
def test_multi_output_models_are_fitted_with_missing_outputs(case, rng):
    x = rng.uniform(-1, 1, size=(40, D))
    f = np.concatenate([np.sin(3 * x), np.sin(3 * (x - 0.5)), 2 * np.sin(3 * (x + 0.3))], axis=1)
    y = f + 0.05 * rng.normal(size=f.shape)
    y[:20, 1] = np.nan
    data = dgpax.dataset(x, y, missing="keep_outputs")
    z = jnp.linspace(-1.5, 1.5, 12)[:, None]
    inducing = OutputPoints(z[::2], P) if case[1] == "outputs" else Points(z)
    model = DeepGP(GPLayer(_kernel(case[0]), P, inducing=inducing), GaussianNoise(0.1))
    start = elbo(model, MeanField.at_prior(model.layers), data).total
    engine = NaturalGradient(natural_rate=0.3, max_steps=300)
    fitted = dgpax.fit(model, data, "variational", engine=engine)
    assert fitted.report.objective_end > float(start) + 50
    mean = dgpax.predict_latent(fitted, x).mean
    assert np.sqrt(np.mean((np.asarray(mean) - f) ** 2)) < 0.35


def test_bad_input_is_explained():
    with pytest.raises(InputError, match="num_outputs=3"):
        GPLayer(_kernel("lmc"), 2)
    with pytest.raises(InputError, match="P outputs, Q processes"):
        LMC(RBF(), jnp.ones(3))
    with pytest.raises(InputError, match="mixes 2 processes"):
        LMC(Separate(RBF(), RBF(), RBF()), jnp.ones((3, 2))).diag(jnp.ones((1, 2, 1)))
    with pytest.raises(InputError, match="shape \\(P, D\\)"):
        ProcessConvolution(jnp.ones((2, 1)), jnp.ones((3, 1)), jnp.ones(2))
    with pytest.raises(InputError, match="one output number"):
        OutputPairs(jnp.ones((3, 1)), jnp.asarray([0, 1]))
