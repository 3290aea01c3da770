"""Groups of chains side by side: no batch of LAPACK calls in their programs, and the same draws in any threads."""

from __future__ import annotations

import itertools
import time

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from programs import largest_batch

import dgpax
from dgpax.kernels import RBF
from dgpax.likelihoods import StudentT
from dgpax.linalg import lower_product
from dgpax.stride import (
    Composition,
    Convolution,
    CrossApproximation,
    FullySparse,
    Injective,
    Residual,
    Schedule,
    Standard,
    Stride,
)
from dgpax.stride import _expectation as expectation
from dgpax.stride._problem import start_posterior
from dgpax.stride._samplers import PCN, Chains
from dgpax.stride._top import ExactTop, SampledTop, SparseTop

S, N, M = 4, 24, 6
ROWS = jnp.arange(M)
KNOWN = {"kernel": RBF(0.3, 1.0), "noise_variance": 0.01}
TOPS = {"sparse": SparseTop(ROWS), "exact": ExactTop(), "sampled": SampledTop(ROWS, StudentT())}
HIDDEN = {"standard": Standard(), "cross": CrossApproximation(5), "sparse": FullySparse()}
NEVER = ("sparse", "exact")
"""Sparse hidden layers stand at inducing points."""
ARCHITECTURES = {
    "composition": Composition(2),
    "convolution": Convolution(2),
    "residual": Residual(2),
    "injective": Injective(2),
}


def posterior_of(architecture, hidden, top):
    x = jnp.linspace(-1, 1, N)[:, None]
    return start_posterior(architecture, hidden, top, dgpax.dataset(x, jnp.sin(3 * x)), RBF(0.5, 1.0), jnp.asarray(0.1))


CASES = [case for case in itertools.product(ARCHITECTURES, HIDDEN, TOPS) if case[1:] != NEVER]
QUICK = [case for case in CASES if case[0] == "composition" or case[1:] == ("standard", "sparse")]


@pytest.mark.parametrize(
    ("architecture", "hidden", "top"),
    [pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow) for case in CASES],
)
def test_no_program_of_chains_has_a_batch_of_lapack_calls(architecture, hidden, top):
    """Two programs that had one would wait for each other forever."""
    posterior, whitened = posterior_of(ARCHITECTURES[architecture], HIDDEN[hidden], TOPS[top])
    if top == "sampled":
        whitened = (*whitened, jnp.zeros((M, 1)))
    position = tuple(jnp.broadcast_to(xi, (S, *xi.shape)) for xi in whitened)

    def steps(position):
        chains = Chains(position, jnp.zeros(S), jnp.asarray(0.1))
        return expectation._steps(posterior, chains, jr.key(0), PCN(), jnp.asarray(True), 2)

    assert largest_batch(steps, position) <= 2


@pytest.mark.parametrize("size", [3, 60, 250])
def test_products_with_lower_triangles(size):
    rng = np.random.default_rng(0)
    root, x = np.tril(rng.normal(size=(size, size))), rng.normal(size=(size, 4))
    assert_allclose(lower_product(jnp.asarray(root), jnp.asarray(x)), root @ x, rtol=1e-11, atol=1e-11)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chains")
def test_the_number_of_threads_changes_nothing(monkeypatch):
    x = np.linspace(0, 1, N)[:, None]
    data = dgpax.dataset(x, np.sin(6 * x))
    schedule = Schedule(num_iterations=2, num_steps=5, num_exchanges=1, num_candidates=5, particles_at_once=2)

    def fit(num_cores, initial=None):
        monkeypatch.setattr(expectation, "_num_cores", lambda: num_cores)
        known = KNOWN if initial is None else {"initial": initial}
        return dgpax.fit(Composition(), data, Stride(M, 6, schedule=schedule, **known), progress=False)

    alone = fit(1)
    together = fit(3, alone.initial)
    chains, details = alone.target.chains, alone.report.details
    jax.tree.map(assert_array_equal, together.target.chains.position, chains.position)
    assert together.report.details["proposal_scale"] == details["proposal_scale"]
    assert details["acceptance_rate"].shape == (2,)
    assert len(np.unique(np.asarray(chains.position[0]).reshape(6, -1), axis=0)) == 6


def test_an_error_in_a_group_reaches_the_caller():
    def fail(item):
        if item == 2:
            raise ValueError("group 2")
        return item

    with expectation.Workers(1) as workers, pytest.raises(ValueError, match="group 2"):
        workers.map(fail, range(4))


def test_groups_that_need_much_memory_run_one_after_the_other(monkeypatch):
    monkeypatch.setattr(expectation, "_num_cores", lambda: 4)
    running, most = [], []

    def call(item):
        running.append(item)
        time.sleep(0.05)
        most.append(len(running))
        running.remove(item)

    for entries, expected in ((1, 4), (expectation.ENTRIES_SIDE_BY_SIDE // 2, 2), (10**12, 1)):
        most.clear()
        with expectation.Workers(entries) as workers:
            workers.map(call, range(9))
        assert max(most) == expected
