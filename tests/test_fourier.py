"""Fourier features against numerical inner products, the exact GP and the bound that reads the data."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.interdomain import Matern

from dgpax import DeepGP, GPLayer, fit
from dgpax.covariances import Kuf, Kuu
from dgpax.data import Dataset, InMemory
from dgpax.errors import InputError, MissingRuleError
from dgpax.inducing import AdditiveFourier, Fourier, Points, ProductFourier
from dgpax.inference import LBFGS, Gradient, Sparse
from dgpax.kernels import RBF, Matern12, Matern32, Matern52
from dgpax.likelihoods import GaussianNoise
from dgpax.linalg import Kronecker, LowRankPlusDiagonal
from dgpax.means import Constant
from dgpax.objectives import FourierStatistics, collapsed_bound, collapsed_bound_from, elbo, log_evidence
from dgpax.parameters import cast
from dgpax.posteriors import ExactPosterior, optimal_posterior
from dgpax.propagate import propagate

pytestmark = pytest.mark.slow

ORDERS = {Matern12: 1, Matern32: 2, Matern52: 3}
LOW, HIGH, F = -1.0, 1.6, 3

each_order = pytest.mark.parametrize("kind", ORDERS, ids=lambda kind: kind.__name__)


def reference_space(kind):
    """The space, and the features 1, cos, sin in it."""
    space = Matern(ORDERS[kind], 0.7, 1.8, LOW, HIGH)
    frequencies = 2 * np.pi * np.arange(F + 1) / (HIGH - LOW)
    waves = [space.wave(w, "cos") for w in frequencies] + [space.wave(w, "sin") for w in frequencies[1:]]
    return space, waves


@each_order
def test_kuu_is_the_inner_product_and_kuf_reproduces_inside_and_outside(kind):
    """⟨k(x, ·), φ⟩ = φ(x) inside shows that the reference is the inner product of this kernel's space."""
    space, waves = reference_space(kind)
    inducing, kernel = Fourier(LOW, HIGH, F), kind(0.7, 1.8)
    x = np.array([-2.1, -1.3, LOW, -0.4, 0.5, HIGH, 1.9, 3.0])
    uf = np.asarray(Kuf(inducing, kernel, jnp.asarray(x)[None, :, None])[0])
    expected = [[space.inner(space.section(at), wave, [np.clip(at, LOW, HIGH)]) for at in x] for wave in waves]
    np.testing.assert_allclose(uf, expected, atol=1e-10)
    np.testing.assert_allclose(uf[:, 2:6], [wave(x[2:6], 0) for wave in waves], atol=1e-13)
    uu = Kuu(inducing, kernel)
    assert isinstance(uu, LowRankPlusDiagonal) and uu.low_rank.shape == (1, 2 * F + 1, ORDERS[kind])
    expected = np.array([[space.inner(g, h) for g in waves] for h in waves])
    np.testing.assert_allclose(uu.to_dense()[0], expected, rtol=1e-10, atol=1e-10)


def regression(rng, N=30, D=1, P=1):
    x = rng.uniform(-1, 1, size=(N, D))
    y = np.stack([np.sin(3 * x[:, 0] + p) + x[:, -1] ** 2 for p in range(P)], axis=1)
    return Dataset(jnp.asarray(x), jnp.asarray(y + 0.1 * rng.normal(size=y.shape)))


def model_of(kernel, inducing=None, noise: float | np.ndarray = 0.05, P=1):
    return DeepGP(GPLayer(kernel, num_outputs=P, inducing=inducing), GaussianNoise(noise))


@eqx.filter_jit
def bound_of(model, data):
    return collapsed_bound(model, data).total


@eqx.filter_jit
def moments_of(model, posterior, x):
    return propagate(model.layers, posterior, x, posterior.begin(model.layers)).marginal()


@eqx.filter_jit
def covariances_of(inducing, kernel, x):
    uu, uf = Kuu(inducing, kernel), Kuf(inducing, kernel, x)
    return uf, uu.solve(uf)


@pytest.mark.parametrize(
    "kind, tolerance, moments", [(Matern12, 2.5, 0.06), (Matern32, 2e-3, 1e-3), (Matern52, 1e-4, 1e-4)]
)
def test_more_features_on_a_wide_interval_lead_to_the_exact_gp(kind, tolerance, moments, rng):
    """The gap falls at least like 1/F, the rate of Matérn 1/2 (its spectral density's tail), up to the interval's."""
    data, kernel = regression(rng), kind(0.6, 1.3)
    exact = model_of(kernel)
    evidence = float(log_evidence(exact, data).total)
    models = [model_of(kernel, Fourier.covering(data.x, num, margin=2.0)) for num in (20, 200)]
    gaps = [evidence - float(bound_of(model, data)) for model in models]
    assert gaps[0] > 9 * gaps[1] > 0 and gaps[1] < tolerance
    x_new, results = jnp.linspace(-1.5, 1.5, 21)[:, None], []
    for model, posterior in (
        (exact, ExactPosterior.condition(exact, data)),
        (models[1], optimal_posterior(models[1], data)),
    ):
        results.append(moments_of(model, posterior, x_new))
    np.testing.assert_allclose(results[1].mean, results[0].mean, atol=moments)
    np.testing.assert_allclose(results[1].variance, results[0].variance, atol=moments)


PER_OUTPUT = Matern52(np.array([[0.6], [1.0]]), np.array([1.7, 1.0]))
SEVERAL = {
    "one column": lambda x: (Matern52(0.6, 1.7).on(1), Fourier.covering(x[:, 1:], 6)),
    "additive": lambda x: (Matern12(0.6).on(0) + PER_OUTPUT.on(1), AdditiveFourier.covering(x, 6)),
    "product": lambda x: (Matern32(0.9).on(0) * PER_OUTPUT.on(1), ProductFourier.covering(x, 3)),
}


@eqx.filter_jit
@eqx.filter_value_and_grad
def reading_the_data(model, data):
    return collapsed_bound(model, data).total


@eqx.filter_jit
@eqx.filter_value_and_grad
def from_statistics(model, statistics):
    return collapsed_bound_from(statistics, model).total


@pytest.mark.parametrize(
    "name, noise", [("one column", 0.05), ("one column", [0.05, 0.1]), ("additive", 0.05), ("product", [0.05, 0.1])]
)
def test_the_bound_from_statistics_equals_the_bound_from_data(name, noise, rng):
    data = regression(rng, N=25, D=2, P=2)
    kernel, inducing = SEVERAL[name](data.x)
    model = model_of(kernel, inducing, np.asarray(noise), P=2)
    statistics = FourierStatistics.of(model_of(kernel, inducing, 1.0, P=2), data, chunk_rows=10)
    value, slope = reading_the_data(model, data)
    other_value, other_slope = from_statistics(model, statistics)
    np.testing.assert_allclose(other_value, value, rtol=1e-10)
    for mine, other in zip(jax.tree.leaves(other_slope), jax.tree.leaves(slope), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-8, atol=1e-8)


def test_statistics_hold_for_other_hyperparameters(rng):
    data, inducing = regression(rng), Fourier(-2.0, 2.0, 8)
    statistics = FourierStatistics.of(model_of(Matern32(5.0), inducing), data)
    model = model_of(Matern32(0.3, 2.0), inducing, 0.01)
    np.testing.assert_allclose(
        collapsed_bound_from(statistics, model).total, collapsed_bound(model, data).total, atol=1e-8
    )


def test_several_kernels_in_one_call_equal_single_calls(rng):
    x = jnp.asarray(rng.uniform(-1, 1, size=(3, 1, 5, 2)))
    for name, operator in (("additive", LowRankPlusDiagonal), ("product", Kronecker)):
        kernel, inducing = SEVERAL[name](x.reshape(-1, 2))
        uf, solved = covariances_of(inducing, kernel, x)
        assert isinstance(Kuu(inducing, kernel), operator) and uf.shape == (3, 2, inducing.num_inducing, 5)
        for p, single in enumerate((Matern52(0.6, 1.7), Matern52(1.0, 1.0))):
            alone = covariances_of(inducing, type(kernel)(kernel.kernels[0], single.on(1)), x)
            np.testing.assert_allclose(uf[:, p], alone[0][:, 0], rtol=1e-13, atol=1e-14)
            np.testing.assert_allclose(solved[:, p], alone[1][:, 0], rtol=1e-9, atol=1e-12)


def test_additive_blocks_are_independent(rng):
    kernel, inducing = (
        Matern12(0.6).on(0) + Matern52(0.8).on(1),
        AdditiveFourier([Fourier(-2, 2, 2), Fourier(-3, 2, 3)]),
    )
    dense = np.asarray(Kuu(inducing, kernel).to_dense()[0])
    first = np.asarray(Kuu(inducing.parts[0], Matern12(0.6)).to_dense()[0])
    second = np.asarray(Kuu(inducing.parts[1], Matern52(0.8)).to_dense()[0])
    np.testing.assert_allclose(dense, np.block([[first, np.zeros((5, 7))], [np.zeros((7, 5)), second]]), atol=1e-12)


def test_the_elbo_at_the_optimal_posterior_is_the_bound(rng, key):
    data = regression(rng, D=2)
    model = model_of(Matern32(0.6).on(0) * Matern52(0.8).on(1), ProductFourier.covering(data.x, 3))
    value = elbo(model, optimal_posterior(model, data), data, key=key).total
    np.testing.assert_allclose(value, collapsed_bound(model, data).total, rtol=1e-9)


def test_float32_stays_float32(rng):
    x = jnp.asarray(rng.uniform(-2, 2, size=(1, 6, 1)), jnp.float32)
    kernel, inducing = cast(Matern52(0.7), jnp.float32), Fourier(-1, 1, 3)
    uu, uf = Kuu(inducing, kernel), Kuf(inducing, kernel, x)
    assert uu.to_dense().dtype == uf.dtype == jnp.float32
    high = Kuf(inducing, Matern52(0.7), x.astype(jnp.float64))
    np.testing.assert_allclose(uf, high, atol=1e-5)


def test_bad_intervals_are_refused(rng):
    data, line = regression(rng, D=2), regression(rng)
    additive = Matern32().on(0) + Matern32().on(1)
    refused = {
        "finite low < high": lambda: Fourier(1.0, 1.0, 3),
        "at least 1": lambda: Fourier(0.0, 1.0, 0),
        "aren't constant": lambda: Fourier.covering(jnp.ones((4, 1)), 3),
        "shape \\(N, 1\\)": lambda: Fourier.covering(data.x, 3),
        "one input column; got 2": lambda: Kuf(Fourier(0, 1, 2), Matern32(), data.x[None]),
        "2 length scales": lambda: Kuu(Fourier(0, 1, 2), Matern32(np.ones(2))),
        "1 parts and the kernel 2": lambda: Kuu(AdditiveFourier([Fourier(0, 1, 2)]), additive),
        "\\[0, 1\\] doesn't cover input column 0.*Widen": lambda: FourierStatistics.of(
            model_of(Matern32(), Fourier(0, 1, 2)), line
        ),
        "doesn't cover input column 1": lambda: FourierStatistics.of(
            model_of(additive, AdditiveFourier([Fourier(-2, 2, 2), Fourier(0, 2, 2)])), data
        ),
        "need Fourier features; this layer has Points": lambda: FourierStatistics.of(
            model_of(Matern32(), Points(line.x[:3])), line
        ),
        "can't be trained": lambda: FourierStatistics.of(
            DeepGP(GPLayer(Matern32(), mean=Constant(0.0), inducing=Fourier(-2, 2, 2)), GaussianNoise(0.1)), line
        ),
    }
    for message, attempt in refused.items():
        with pytest.raises(InputError, match=message):
            attempt()
    with pytest.raises(MissingRuleError, match="Fourier, Matern32"):
        Kuu(Fourier(0, 1, 2), RBF())


def test_fit_reads_the_rows_once_and_finds_the_same_model(rng):
    """The steps see sums only; the result is that of the bound that reads the data in every step."""
    data = regression(rng, P=2)
    model = model_of(Matern32(0.5), Fourier.covering(data.x, 6), P=2)
    method, engine = Sparse(), LBFGS(max_steps=40, steps_per_call=10)
    assert isinstance(method.prepare(model, data), FourierStatistics)
    fitted = fit(model, data, method, engine=engine)
    np.testing.assert_allclose(fitted.report.objective_end, bound_of(fitted.model, data), rtol=1e-9)
    value, slopes = reading_the_data(fitted.model, data)
    assert value > float(bound_of(model, data)) + 1
    assert all(float(jnp.max(jnp.abs(slope))) < 0.02 for slope in jax.tree.leaves(slopes))
    best = optimal_posterior(fitted.model, data)
    for mine, other in zip(jax.tree.leaves(fitted.posterior), jax.tree.leaves(best), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-8)


def test_fit_reads_the_rows_where_sums_are_not_enough(rng):
    data, engine = regression(rng), Gradient(max_steps=1)
    inducing = Fourier.covering(data.x, 3)
    trained = DeepGP(GPLayer(Matern32(), mean=Constant(0.0), inducing=inducing), GaussianNoise(0.1))
    assert Sparse().prepare(trained, data) is data
    with pytest.raises(InputError, match=f"Sparse needs all {data.num_rows} rows in every step"):
        fit(model_of(Matern32(), inducing), InMemory(data, 5), "sparse", engine=engine)
