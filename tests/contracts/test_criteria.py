"""Every criterion of design: a finite and smooth score for each row, by itself and with runs that are pending."""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dgpax
from contracts.completeness import final_subclasses
from dgpax.design import ALC, VIGF, AbstractCriterion, Beliefs, ContourEntropy, ExpectedImprovement, Thompson, Variance
from dgpax.design._beliefs import Runs

CRITERIA = {
    ALC: ALC(),
    ContourEntropy: ContourEntropy(0.5),
    ExpectedImprovement: ExpectedImprovement(),
    Thompson: Thompson(maximise=True),
    VIGF: VIGF(),
    Variance: Variance(),
}
AT = np.random.default_rng(5).random((6, 2))


@pytest.fixture(scope="module")
def runs():
    x = np.random.default_rng(0).random((12, 2))
    return x, np.sin(5.0 * x[:, :1]) + x[:, 1:]


@pytest.fixture(scope="module")
def shallow(runs):
    layer = dgpax.GPLayer(dgpax.kernels.RBF([0.3, 0.3], 1.5))
    model = dgpax.freeze(dgpax.DeepGP(layer, dgpax.likelihoods.GaussianNoise(0.04)))
    return dgpax.fit(model, dgpax.dataset(*runs), progress=False)


@pytest.fixture(scope="module")
def deep(runs):
    """Two layers at where training begins, with a posterior that differs from the prior."""
    data = dgpax.dataset(*runs)
    model = dgpax.freeze(dgpax.deep_gp(data, 2, 5))
    posterior = dgpax.freeze(dgpax.posteriors.posterior_at_prior("mean-field", model.layers))
    fitted = dgpax.fit(model, data, dgpax.inference.Variational(posterior), progress=False)

    def means(fitted):
        return [block.mean for block in fitted.posterior.blocks]

    return eqx.tree_at(means, fitted, replace_fn=lambda mean: jax.tree.map(lambda leaf: leaf + 0.5, mean))


def beliefs_of(fitted, runs, criterion, slots):
    known = Runs(jnp.asarray(runs[0]), jnp.asarray(runs[1]), jnp.ones(len(runs[0]), bool))
    beliefs = Beliefs.of(fitted, jnp.asarray(AT), known, slots, 0, criterion.num_draws)
    for row in AT[: min(2, slots)]:
        beliefs = beliefs.given(jnp.asarray(row))
    return beliefs


@eqx.filter_jit
def _scores(criterion, beliefs, x):
    return criterion.scores(beliefs, x)


def check(fitted, runs, criterion, slots):
    """One score a row, the same for the same seed; slopes as differences have them, to 1e-6 of the largest."""
    beliefs = beliefs_of(fitted, runs, criterion, slots)
    criterion.check(beliefs)
    scores = partial(_scores, criterion, beliefs)
    h, x = 1e-5, np.array([0.37, 0.61])
    moved = jnp.asarray(np.stack([x, *[x + sign * h * e for e in np.eye(2) for sign in (1.0, -1.0)]]))
    slope = eqx.filter_jit(jax.grad(lambda x: _scores(criterion, beliefs, x)[0]))(moved)[0]
    values = np.asarray(scores(moved))
    assert values.shape == (5,) and np.all(np.isfinite(values))
    alone = [np.asarray(scores(jnp.broadcast_to(row, (5, 2))))[0] for row in moved]
    differences = np.array([alone[1] - alone[2], alone[3] - alone[4]]) / (2 * h)
    np.testing.assert_allclose(slope, differences, atol=1e-6 * max(1.0, np.abs(differences).max()))
    spread = float(np.std(runs[1]))
    assert np.isfinite(criterion.relative(float(values[0]), spread))


def test_every_criterion_has_a_row():
    assert set(CRITERIA) == final_subclasses(AbstractCriterion)


@pytest.mark.parametrize("kind", CRITERIA, ids=lambda kind: kind.__name__)
def test_criterion_of_one_layer(shallow, runs, kind):
    check(shallow, runs, CRITERIA[kind], 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CRITERIA, ids=lambda kind: kind.__name__)
def test_criterion_of_two_layers_with_pending_runs(deep, runs, kind):
    check(deep, runs, CRITERIA[kind], 4)
