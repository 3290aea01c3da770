"""Hyperparameters drawn by NUTS: ranks, a random walk, quadrature."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import dgpax
from dgpax import DeepGP, GPLayer
from dgpax.errors import InputError
from dgpax.inducing import Points
from dgpax.inference import NUTS, Exact, Sparse, effective_sample_size, fit_many
from dgpax.kernels import RBF
from dgpax.likelihoods import GaussianNoise
from dgpax.parameters import LogNormalPrior, Positive, Real, find

PRIORS = {"lengthscale": (-0.7, 0.6), "variance": (0.0, 0.5), "noise_variance": (-2.0, 0.7)}
"""Means and standard deviations of logarithms, in the order in which a model has them."""


def model_at(lengthscale=0.5, variance=1.0, noise=0.1) -> DeepGP:
    def positive(name: str, value: float) -> Positive:
        return Positive(value, prior=LogNormalPrior(*PRIORS[name]), floor=0.0)

    kernel = RBF(positive("lengthscale", lengthscale), positive("variance", variance))
    return DeepGP(GPLayer(kernel), GaussianNoise(positive("noise_variance", noise)))


def gram(x: np.ndarray, lengthscale: float, variance: float, noise: float) -> Any:
    return variance * np.exp(-0.5 * (x - x.T) ** 2 / lengthscale**2) + noise * np.eye(len(x))


def log_posterior(logs: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    density = stats.multivariate_normal.logpdf(y, cov=gram(x, *np.exp(logs)))
    return density + sum(stats.norm.logpdf(value, *PRIORS[name]) for name, value in zip(PRIORS, logs, strict=True))


def logs_of(fitted) -> np.ndarray:
    """log length scale, variance and noise of every draw."""

    def of(member) -> list[float]:
        return [np.log(float(p.value)) for name, p in find(member.model).items() if "inducing" not in name]

    return np.array([of(member) for member in fitted.members])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chains")
def test_ranks_of_the_truth_among_draws_are_uniform():
    """Simulation-based calibration [Talts et al. 2018], 200 data sets of eight rows; the chance that a right sampler
    fails is 1% over the three hyperparameters."""
    rng, num_sets, num_draws = np.random.default_rng(0), 200, 19
    truths, datasets = [], []
    for _ in range(num_sets):
        logs = np.array([rng.normal(*PRIORS[name]) for name in PRIORS])
        x = rng.uniform(-1, 1, (8, 1))
        y = np.linalg.cholesky(gram(x, *np.exp(logs))) @ rng.normal(size=8)
        truths.append(logs)
        datasets.append(dgpax.dataset(x, y))
    method = Exact(hyperparameters="sampled", num_draws=num_draws)
    engine = NUTS(num_draws=num_draws, num_chains=1, num_warmup=200, spacing=4)
    fits = fit_many([model_at()] * num_sets, datasets, method, engine=engine, seeds=range(num_sets), progress=False)
    ranks = np.array([np.sum(logs_of(fitted) < truth, axis=0) for fitted, truth in zip(fits, truths, strict=True)])
    for column in ranks.T:
        counts = np.bincount(column // 4, minlength=5)
        assert stats.chisquare(counts).pvalue > 0.01 / 3


def one_set(num_rows: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (num_rows, 1))
    return x, np.sin(4 * x[:, 0]) + 0.2 * rng.normal(size=num_rows)


@pytest.mark.slow
@pytest.mark.parametrize("method", [Exact, Sparse], ids=lambda kind: kind.__name__)
def test_draws_are_those_of_a_long_random_walk(method):
    """Means and standard deviations of the logarithms, within five standard errors of both."""
    x, y = one_set()
    model = model_at()
    if method is Sparse:  # with all rows as inducing points, held, the bound is the evidence
        model = DeepGP(GPLayer(model.layers[0].kernel, inducing=Points(jnp.asarray(x))), model.likelihood)
    fitted = dgpax.fit(
        model, dgpax.dataset(x, y), method(hyperparameters="sampled", num_draws=400),
        engine=NUTS(num_draws=400, num_warmup=300, spacing=4), progress=False,
    )  # fmt: skip
    assert fitted.report.details["r_hat"] < 1.1
    walk = random_walk(x, y, 20_000)
    drawn = logs_of(fitted)[:, : walk.shape[1]]
    for ours, reference in zip(drawn.T, walk.T, strict=True):
        size = min(effective_sample_size(ours.reshape(-1, 4)), effective_sample_size(reference.reshape(-1, 4)))
        spread = np.std(reference)
        assert abs(np.mean(ours) - np.mean(reference)) < 5 * spread * np.sqrt(2 / size)
        assert abs(np.log(np.std(ours) / spread)) < 5 * np.sqrt(1 / size)


def random_walk(x: np.ndarray, y: np.ndarray, steps: int) -> np.ndarray:
    """Metropolis; the first tenth is left out."""
    rng = np.random.default_rng(2)
    at = np.array([mean for mean, _ in PRIORS.values()])
    density, path = log_posterior(at, x, y), []
    for _ in range(steps):
        proposed = at + 0.6 * np.array([0.5, 0.7, 0.8]) * rng.normal(size=3)
        new = log_posterior(proposed, x, y)
        if np.log(rng.uniform()) < new - density:
            at, density = proposed, new
        path.append(at)
    return np.array(path[steps // 10 :])


@pytest.mark.slow
def test_predictions_are_those_of_quadrature():
    """One hyperparameter: the mixture's mean within five standard errors of 1,000 draws, which the centre of the prior
    misses."""
    x, y = one_set()
    new, prior = np.linspace(-1.2, 1.2, 7)[:, None], (-0.9, 0.3)
    kernel = RBF(Positive(0.4, prior=LogNormalPrior(*prior), floor=0.0), variance=Real(1.0, trainable=False))
    model = DeepGP(GPLayer(kernel), GaussianNoise(Real(0.05, trainable=False)))
    engine = NUTS(num_draws=1000, num_warmup=300, spacing=2)
    method = Exact(hyperparameters="sampled", num_draws=1000)
    fitted = dgpax.fit(model, dgpax.dataset(x, y), method, engine=engine, progress=False)
    grid = prior[0] + prior[1] * np.linspace(-6, 6, 400)
    log_weights, means = [], []
    for log_lengthscale in grid:
        K = gram(x, np.exp(log_lengthscale), 1.0, 0.05)
        k = gram(np.concatenate([x, new]), np.exp(log_lengthscale), 1.0, 0.0)[: len(x), len(x) :]
        log_weights.append(stats.multivariate_normal.logpdf(y, cov=K) + stats.norm.logpdf(log_lengthscale, *prior))
        means.append(k.T @ np.linalg.solve(K, y))
    weights = np.exp(np.array(log_weights) - logsumexp(log_weights))
    expected = weights @ np.array(means)
    errors = np.sqrt(weights @ (np.array(means) - expected) ** 2 / 1000)
    assert np.all(np.abs(dgpax.predict(fitted, new).mean[:, 0] - expected) < 5 * errors + 1e-8)
    assert np.any(np.abs(means[200] - expected) > 5 * errors)


def test_chains_share_the_draws():
    with pytest.raises(InputError, match="chains can share"):
        NUTS(num_draws=10, num_chains=4)
