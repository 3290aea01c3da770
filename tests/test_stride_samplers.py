"""Chains that leave the posterior invariant, and what is said about their mixing."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax import lax
from numpy.testing import assert_allclose
from scipy import stats

from dgpax.errors import InputError
from dgpax.inference import effective_sample_size, split_r_hat
from dgpax.kernels import RBF
from dgpax.linalg import safe_cholesky
from dgpax.stride import (
    PCN,
    Chains,
    Composition,
    EllipticalSlice,
    Standard,
    Stationary,
    factorise,
    run_chains,
)
from dgpax.stride._hidden import Prior, Selected
from dgpax.stride._top import SparseTop

SAMPLERS = {"pCN": PCN(0.3), "slice": EllipticalSlice()}


def start(log_likelihood, num_chains: int, shape: tuple[int, ...], scale: float, key) -> Chains:
    position = jr.normal(key, (num_chains, *shape))
    return Chains(position, log_likelihood(position), jnp.asarray(scale))


def sample(sampler, log_likelihood, chains, key, *, num_steps, thin=1):
    """Positions after every `thin` steps, [draws, S, …], and whether chains moved."""

    @eqx.filter_jit
    def draw(chains, key):
        def block(chains, key):
            chains, info = run_chains(sampler, chains, log_likelihood, key, num_steps=thin, adapting=False)
            return chains, (chains.position, info.accepted)

        return lax.scan(block, chains, jr.split(key, num_steps))

    return draw(chains, key)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_constant_likelihood_accepts_everything_and_keeps_the_prior(name, key):
    def constant(position):
        return jnp.zeros(position.shape[0])

    chains = start(constant, 4000, (3,), 0.3, key)
    _, (positions, accepted) = sample(SAMPLERS[name], constant, chains, jr.key(1), num_steps=20)
    assert bool(jnp.all(accepted))
    last = np.asarray(positions[-1])
    assert_allclose(last.mean(axis=0), 0.0, atol=4 / np.sqrt(4000))
    assert_allclose(np.cov(last.T), np.eye(3), atol=4 * np.sqrt(2 / 4000))
    assert stats.kstest(last[:, 0], "norm").pvalue > 1e-3
    assert not np.allclose(last, np.asarray(chains.position))


@pytest.mark.parametrize("name", SAMPLERS)
def test_what_is_not_finite_is_never_kept(name, key):
    def broken(position):
        return jnp.where(position[:, 0] > 0, jnp.nan, -0.5 * position[:, 1] ** 2)

    chains = Chains(-jnp.ones((50, 2)), broken(-jnp.ones((50, 2))), jnp.asarray(0.5))
    end, (positions, _) = sample(SAMPLERS[name], broken, chains, key, num_steps=50)
    assert np.all(np.asarray(positions)[..., 0] <= 0)
    assert np.all(np.isfinite(end.log_likelihood))


def test_the_scale_moves_only_in_the_warm_up(key):
    def sharp(position):
        return -50.0 * jnp.sum(position**2, axis=1)

    chains = start(sharp, 100, (5,), 1.0, key)

    @eqx.filter_jit
    def run(chains, key, adapting):
        return run_chains(PCN(1.0), chains, sharp, key, num_steps=300, adapting=adapting)

    warm, _ = run(chains, jr.key(1), jnp.asarray(True))
    after, info = run(warm, jr.key(2), jnp.asarray(False))
    assert float(warm.scale) < 0.5
    assert float(after.scale) == float(warm.scale)
    assert abs(float(jnp.mean(info.accepted)) - 0.25) < 0.1


def test_diagnostics_of_independent_draws(rng):
    draws = rng.normal(size=(1000, 8))
    assert_allclose(split_r_hat(draws), 1.0, atol=0.01)
    assert_allclose(effective_sample_size(draws), 8000, rtol=0.15)


def test_diagnostics_of_an_autoregression(rng):
    """With correlation 0.9, the effective sample size is (1 − 0.9)/(1 + 0.9) of the draws."""
    noise = rng.normal(size=(5000, 8))
    draws = np.zeros_like(noise)
    draws[0] = noise[0] / np.sqrt(1 - 0.81)
    for t in range(1, len(draws)):
        draws[t] = 0.9 * draws[t - 1] + noise[t]
    assert_allclose(effective_sample_size(draws), 40_000 / 19, rtol=0.2)


def test_diagnostics_of_chains_that_disagree(rng):
    draws = rng.normal(size=(500, 4)) + 5 * np.arange(4)
    assert split_r_hat(draws) > 3
    assert effective_sample_size(draws) < 10
    assert np.isnan(split_r_hat(np.ones((10, 2))))


def test_proposals_that_make_no_sense():
    with pytest.raises(InputError, match="proposal_scale"):
        PCN(proposal_scale=0.0)
    with pytest.raises(InputError, match="target_acceptance"):
        PCN(target_acceptance=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_moments_of_a_known_posterior(name, key, rng):
    """Linear observations of whitened variables: the posterior is Gaussian. Bounds: 4 standard errors over chains."""
    C, y = jnp.asarray(rng.normal(size=(6, 4))), jnp.asarray(rng.normal(size=6))

    def log_likelihood(position):
        return -0.5 * jnp.sum((y - position @ C.T) ** 2, axis=1)

    chains = start(log_likelihood, 400, (4,), 0.5, key)
    chains, _ = sample(SAMPLERS[name], log_likelihood, chains, jr.key(1), num_steps=1, thin=500)
    _, (positions, _) = sample(SAMPLERS[name], log_likelihood, chains, jr.key(2), num_steps=400, thin=5)
    draws = np.asarray(positions)
    covariance = np.linalg.inv(np.eye(4) + C.T @ C)
    mean = covariance @ C.T @ y
    for statistic, expected in [(draws, mean), (draws**2, mean**2 + np.diag(covariance))]:
        per_chain = statistic.mean(axis=0)
        error = per_chain.std(axis=0, ddof=1) / np.sqrt(per_chain.shape[0])
        assert np.all(np.abs(per_chain.mean(axis=0) - expected) < 4 * error)


@pytest.mark.slow
def test_acceptance_does_not_depend_on_the_number_of_rows(key):
    """Ten observations of a layer that is sampled at 100 to 1,600 rows: at most 5 points apart."""
    rates = []
    for n in (100, 400, 1600):
        x = jnp.linspace(0, 1, n)[:, None]
        root = safe_cholesky(Stationary(RBF(0.2, 1.0))(x, x)).factor
        seen = root[jnp.linspace(0, n - 1, 10).round().astype(int)]
        y = jnp.sin(6.0 * jnp.linspace(0, 1, 10))

        def log_likelihood(position, seen=seen, y=y):
            return -0.5 * jnp.sum((y - position @ seen.T) ** 2, axis=1) / 0.1**2

        chains = start(log_likelihood, 50, (n,), 0.06, key)
        chains, _ = sample(PCN(), log_likelihood, chains, jr.key(1), num_steps=1, thin=1000)
        _, (_, accepted) = sample(PCN(), log_likelihood, chains, jr.key(2), num_steps=1, thin=1000)
        rates.append(float(jnp.mean(accepted)))
    assert max(rates) - min(rates) < 0.05, rates
    assert 0.1 < min(rates) < 0.9


@pytest.mark.slow
@pytest.mark.parametrize(("name", "thin"), [("pCN", 60), ("slice", 15)])
def test_simulation_based_calibration(name, thin, key):
    """200 simulations of a two-layer model, 99 draws each: ranks of f(x₁) and of the log-likelihood are uniform.

    χ² over ten bins and Cook's test, p > 0.01 each [Talts et al. 2018; Cook, Gelman & Rubin 2006].
    """
    n, simulations, draws, noise = 8, 200, 99, 0.3**2
    x = jnp.linspace(-1, 1, n)[:, None]
    architecture = Composition(1)
    setup = architecture.start(x, RBF(0.6, 1.0))
    prior = Prior(architecture, Stationary(setup.bottom), (architecture.covariance(setup.top),), x)
    top = SparseTop(jnp.arange(0, n, 2))
    hidden = Standard().build(prior, Selected(top.inducing, setup.values[None]))

    def features(xi):
        return prior.features(hidden.values(prior, (xi,))[-1])

    def joint(xi, y):
        return top.log_likelihood(prior.top, features(xi), y, jnp.asarray(noise))

    def draw_f(xi, y, key):
        """f(x₁) given y: a prior draw, corrected by what it misses of y; y None is the prior draw and its data."""
        key_f, key_noise = jr.split(key)
        A = factorise(prior.top, features(xi), top.inducing, jnp.zeros((n, 1)), jnp.asarray(noise)).A
        f = A @ jr.normal(key_f, (A.shape[1], 1))
        data = f + noise**0.5 * jr.normal(key_noise, (n, 1))
        if y is None:
            return f, data
        Q = A @ A.T
        return f + Q @ jnp.linalg.solve(Q + noise * jnp.eye(n), y - data), data

    truth = jr.normal(key, (simulations, n, 1))
    keys = jr.split(jr.key(1), simulations)
    f, y = jax.jit(jax.vmap(lambda xi, k: draw_f(xi, None, k)))(truth, keys)

    def log_likelihood(position):
        return jax.vmap(joint)(position, y)

    sampler = PCN(0.4) if name == "pCN" else EllipticalSlice()
    chains = start(log_likelihood, simulations, (n, 1), 0.4, jr.key(2))
    chains, _ = sample(sampler, log_likelihood, chains, jr.key(3), num_steps=1, thin=10 * thin)
    _, (positions, _) = sample(sampler, log_likelihood, chains, jr.key(4), num_steps=draws, thin=thin)
    flat_keys = jr.split(jr.key(5), (draws, simulations))
    sampled = jax.jit(jax.vmap(jax.vmap(lambda xi, y, k: draw_f(xi, y, k)[0][0, 0]), (0, None, 0)))
    quantities = {
        "f(x₁)": (f[:, 0, 0], sampled(positions, y, flat_keys)),
        "log-likelihood": (log_likelihood(truth), jax.jit(jax.vmap(log_likelihood))(positions)),
    }
    for quantity, (true, drawn) in quantities.items():
        ranks = np.sum(np.asarray(drawn) < np.asarray(true), axis=0)
        counts = np.bincount(ranks * 10 // (draws + 1), minlength=10)
        cook = stats.chi2.cdf(np.sum(stats.norm.ppf((ranks + 0.5) / (draws + 1)) ** 2), simulations)
        assert stats.chisquare(counts).pvalue > 0.01, (quantity, counts)
        assert 0.005 < cook < 0.995, (quantity, cook)
