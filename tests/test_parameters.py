"""Parameters: constraints, paths, hyper-priors, splitting and the table."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import stats

from dgpax.errors import InputError, UnknownNameError
from dgpax.kernels import RBF, Matern32, Sum
from dgpax.parameters import (
    AbstractParameter,
    Bounded,
    GammaPrior,
    HalfNormalPrior,
    LogNormalPrior,
    LowerTriangular,
    NormalPrior,
    Positive,
    Real,
    as_lower_triangular,
    as_positive,
    as_real,
    cast,
    combine,
    find,
    fixed,
    freeze,
    log_prior,
    partition,
    sample_priors,
    set_prior,
    set_values,
    table,
    unfreeze,
)


class Layer(eqx.Module):
    kernel: RBF | Sum
    offset: AbstractParameter = eqx.field(converter=as_real)


class Model(eqx.Module):
    layers: tuple[Layer, ...]
    noise_variance: AbstractParameter = eqx.field(converter=as_positive)
    constant: jax.Array


NAMES = (
    "layers[0].kernel.lengthscale",
    "layers[0].kernel.variance",
    "layers[0].offset",
    "layers[1].kernel.kernels[0].lengthscale",
    "layers[1].kernel.kernels[0].variance",
    "layers[1].kernel.kernels[1].lengthscale",
    "layers[1].kernel.kernels[1].variance",
    "layers[1].offset",
    "noise_variance",
)


@pytest.fixture
def model() -> Model:
    first = Layer(RBF([0.5, 2.0], 1.5), jnp.zeros(3))
    second = Layer(Sum(RBF(0.7), Matern32(1.1)), 0.2)
    return Model((first, second), 0.1, jnp.arange(3.0))


def names(found) -> tuple[str, ...]:
    return tuple(found)


def trainable(tree) -> set[str]:
    return {name for name, node in find(tree).items() if node.trainable}


@pytest.mark.parametrize("value", 10.0 ** np.arange(-5, 6))
def test_positive_values_survive_the_round_trip(value):
    np.testing.assert_allclose(float(Positive(value)), value, rtol=1e-12)
    np.testing.assert_allclose(float(Positive(value, floor=0.0)), value, rtol=1e-12)
    low = Positive(jnp.float32(value))
    assert low.dtype == low.value.dtype == jnp.float32
    np.testing.assert_allclose(float(low), value, rtol=3e-6)


def test_bounded_values_survive_the_round_trip():
    values = np.array([-1.9999, -1.0, 0.0, 2.5, 2.9999])
    np.testing.assert_allclose(Bounded(values, -2.0, 3.0), values, rtol=1e-12, atol=1e-12)
    low = Bounded(values.astype(np.float32), -2.0, 3.0)
    assert low.value.dtype == jnp.float32
    np.testing.assert_allclose(low, values, rtol=1e-5, atol=1e-5)


def test_constraints_hold_wherever_the_optimiser_goes():
    anywhere = jnp.array([-1e3, -5.0, 0.0, 5.0, 1e3])
    positive = eqx.tree_at(lambda p: p.raw, Positive(jnp.ones(5), floor=0.01), anywhere)
    assert bool(jnp.all((positive.value >= 0.01) & jnp.isfinite(positive.value)))
    bounded = eqx.tree_at(lambda p: p.raw, Bounded(jnp.ones(5), 0.5, 2.0), anywhere)
    assert bool(jnp.all((bounded.value >= 0.5) & (bounded.value <= 2.0)))
    triangular = LowerTriangular(np.ones((2, 3, 3)))
    np.testing.assert_array_equal(triangular.value, np.tril(np.ones((2, 3, 3))))


def test_converters_keep_parameters_and_dtypes():
    ready = Bounded(1.0, 0.0, 2.0)
    for convert in (as_real, as_positive, as_lower_triangular):
        assert convert(ready) is ready
    assert [type(convert(np.eye(2) + 1.0)) for convert in (as_real, as_positive, as_lower_triangular)] == [
        Real,
        Positive,
        LowerTriangular,
    ]
    assert as_real(2).dtype == as_positive(True).dtype == jnp.float64
    assert as_real(np.float32(2.0)).dtype == as_positive(jnp.ones(2, jnp.float32)).value.dtype == jnp.float32
    assert not fixed(0.0).trainable and float(fixed(0.0)) == 0.0
    assert np.asarray(as_real([1.0, 2.0]), dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize(
    "build",
    [
        lambda: Real(np.nan),
        lambda: Real([1.0, np.inf]),
        lambda: Real(1j),
        lambda: Positive(-1.0),
        lambda: Positive(0.0),
        lambda: Positive(1e-6),
        lambda: Positive(0.05, floor=0.1),
        lambda: Positive([1.0, np.nan]),
        lambda: Positive(np.inf),
        lambda: Bounded(2.0, 0.0, 2.0),
        lambda: Bounded(np.nan, 0.0, 2.0),
        lambda: Bounded(1.0, 2.0, 2.0),
        lambda: LowerTriangular(np.ones((2, 3))),
        lambda: LowerTriangular(np.full((2, 2), np.nan)),
        lambda: NormalPrior(0.0, 0.0),
        lambda: GammaPrior(1.0, -1.0),
        lambda: HalfNormalPrior(float("nan")),
    ],
)
def test_values_that_can_not_be_are_refused(build):
    with pytest.raises(InputError):
        build()


def test_too_small_a_value_says_how_to_allow_it():
    with pytest.raises(InputError, match=r"above its floor 1e-06; got 1e-09.*floor=0.0"):
        RBF(1e-9)


def test_parameters_are_found_by_path_prefix_and_glob(model):
    assert names(find(model)) == NAMES
    assert names(find(model, "layers[0].offset")) == ("layers[0].offset",)
    assert names(find(model, "layers[1]")) == NAMES[3:8]
    assert names(find(model, "layers[1].kernel")) == NAMES[3:7]
    assert names(find(model, "*.variance")) == (NAMES[1], NAMES[4], NAMES[6])
    assert names(find(model, "layers[*].offset")) == (NAMES[2], NAMES[7])
    assert names(find({"a": Real(1.0), "b": 2.0})) == ("['a']",)
    assert find(jnp.ones(2)) == {}


@pytest.mark.parametrize("pattern", ["layers[2]", "layer", "kernel.variance", "layers[0].kernel.variances", ""])
def test_an_unknown_path_lists_those_there_are(model, pattern):
    for act in (find, freeze, unfreeze, lambda m, p: set_values(m, {p: 1.0}), lambda m, p: set_prior(m, p, None)):
        with pytest.raises(UnknownNameError) as caught:
            act(model, pattern)
        assert all(name in str(caught.value) for name in NAMES) and repr(pattern) in str(caught.value)


def test_freezing_and_unfreezing(model):
    frozen = freeze(model, "layers[0]", "noise_variance")
    assert trainable(frozen) == set(NAMES[3:8])
    assert trainable(model) == set(NAMES)
    assert trainable(unfreeze(frozen, "*.kernel.variance")) == set(NAMES[3:8]) | {NAMES[1]}
    assert trainable(unfreeze(freeze(model))) == set(NAMES) and trainable(freeze(model)) == set()
    assert isinstance(find(frozen)["noise_variance"], Positive)


def test_values_are_set_in_the_parameter_s_own_dtype(model):
    changed = set_values(model, {"*.lengthscale": 0.3, "noise_variance": 0.02, "layers[0].offset": np.arange(3)})
    found = find(changed)
    np.testing.assert_allclose(found[NAMES[0]], [0.3, 0.3], rtol=1e-12)
    np.testing.assert_allclose(found["noise_variance"], 0.02, rtol=1e-12)
    np.testing.assert_array_equal(found["layers[0].offset"], [0.0, 1.0, 2.0])
    assert float(model.noise_variance.value) != float(changed.noise_variance.value)
    low = set_values(cast(model, jnp.float32), {"*": 0.3})
    assert all(node.value.dtype == jnp.float32 for node in find(low).values())
    assert not find(set_values(freeze(model), {"*": 0.3}))["noise_variance"].trainable


def test_values_of_the_wrong_shape_or_below_the_floor_are_refused(model):
    with pytest.raises(InputError, match=r"layers\[0\].kernel.lengthscale has shape \(2,\); got .* \(3,\)"):
        set_values(model, {"layers[0].kernel.lengthscale": np.ones(3)})
    with pytest.raises(InputError, match="above its floor"):
        set_values(model, {"noise_variance": -1.0})


def test_partition_splits_and_combine_restores(model):
    model = freeze(model, "layers[1]", "*.lengthscale")
    raw, rest = partition(model)
    assert len(jax.tree.leaves(raw)) == len(trainable(model)) == 3
    assert eqx.tree_equal(combine(raw, rest), model)
    assert jax.tree.structure(combine(raw, rest)) == jax.tree.structure(model)


def test_frozen_parameters_and_constants_have_no_gradient(model):
    raw, rest = partition(freeze(model, "noise_variance"))

    @jax.jit
    def loss(raw):
        whole = combine(raw, rest)
        return sum(jnp.sum(node.value**2) for node in find(whole).values()) + jnp.sum(whole.constant**2)

    gradient = jax.grad(loss)(raw)
    assert gradient.noise_variance.raw is None and gradient.constant is None
    assert len(jax.tree.leaves(gradient)) == len(NAMES) - 1
    length = find(model)[NAMES[0]]
    slope = jax.nn.sigmoid(length.raw)
    np.testing.assert_allclose(gradient.layers[0].kernel.lengthscale.raw, 2.0 * length.value * slope, rtol=1e-12)


PRIORS = (
    (NormalPrior(0.3, 1.2), stats.norm(0.3, 1.2)),
    (LogNormalPrior(0.3, 0.8), stats.lognorm(s=0.8, scale=np.exp(0.3))),
    (GammaPrior(2.5, 1.7), stats.gamma(2.5, scale=1.0 / 1.7)),
    (HalfNormalPrior(1.4), stats.halfnorm(scale=1.4)),
)


@pytest.mark.parametrize(("prior", "reference"), PRIORS, ids=lambda p: type(p).__name__)
def test_hyper_priors_equal_those_of_scipy(prior, reference, key):
    values = np.array([-0.5, 0.01, 0.5, 1.0, 7.0])
    log_prob, vjp = jax.vjp(prior.log_prob, jnp.asarray(values))
    np.testing.assert_allclose(log_prob, reference.logpdf(values), rtol=1e-12, atol=1e-13)
    assert bool(jnp.all(jnp.isfinite(vjp(jnp.ones(5))[0])))
    assert jax.eval_shape(prior.log_prob, jnp.ones(2, jnp.float32)).dtype == jnp.float32
    draws = np.asarray(prior.sample(key, (20_000,)))
    error = reference.std() / np.sqrt(len(draws))
    assert abs(draws.mean() - reference.mean()) < 4.0 * error
    assert stats.kstest(draws, reference.cdf).pvalue > 1e-4


def test_log_prior_is_the_sum_over_entries(model):
    assert float(log_prior(model)) == 0.0
    model = set_prior(model, "*.lengthscale", GammaPrior(2.0, 1.0))
    model = set_prior(model, "layers[0].offset", NormalPrior(0.0, 2.0))
    expected = np.sum(stats.gamma.logpdf([0.5, 2.0, 0.7, 1.1], 2.0)) + 3.0 * stats.norm.logpdf(0.0, 0.0, 2.0)
    np.testing.assert_allclose(log_prior(model), expected, rtol=1e-12)
    assert log_prior(cast(model, jnp.float32)).dtype == jnp.float32
    np.testing.assert_allclose(log_prior(set_prior(model, "layers", None)), 0.0)


def test_only_parameters_with_a_prior_are_drawn(model):
    model = cast(set_prior(model, "*.lengthscale", LogNormalPrior(0.0, 1.0)), jnp.float32)
    first, again, other = (find(sample_priors(model, jr.key(seed))) for seed in (0, 0, 1))
    for name, node in find(model).items():
        assert first[name].dtype == jnp.float32 and first[name].shape == node.shape
        np.testing.assert_array_equal(first[name], again[name])
        assert np.array_equal(first[name], other[name]) == np.array_equal(first[name], node) == (node.prior is None)
    assert len({float(first[name].value.ravel()[0]) for name in names(find(model, "*.lengthscale"))}) == 3
    assert eqx.tree_equal(sample_priors(Real(1.0), jr.key(0)), Real(1.0))


def test_cast_changes_every_floating_array_and_nothing_else(model):
    low = cast(model, jnp.float32)
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(low))
    assert trainable(cast(freeze(model), jnp.float32)) == set()
    assert cast({"count": jnp.arange(2), "name": "x"}, jnp.float32)["count"].dtype == jnp.arange(2).dtype
    for name, node in find(low).items():
        np.testing.assert_allclose(node, find(model)[name], rtol=1e-6)


def test_the_table_shows_every_parameter_as_text_and_html(model):
    model = set_prior(freeze(model, "noise_variance"), "noise_variance", GammaPrior(1.0, 2.0))
    shown = table({"[red]<b>": Real(1.0), "model": model})
    text, page = str(shown), shown._repr_html_()
    for name in NAMES:
        assert f"['model'].{name}" in text and name in page
    assert "[red]<b>" in text and "<b>" not in page and "[red]&lt;b&gt;" in page
    assert "GammaPrior" in text and "&gt; 1e-06" in page and page.count("<tr>") == len(NAMES) + 2
    assert repr(shown) == text
    row = dict(zip([cell[0] for cell in shown.rows], shown.rows, strict=True))["['model'].noise_variance"]
    assert row[1:6] == ("0.1", "scalar", "float64", "no", "> 1e-06")
    assert "0 … 15 (mean 7.5)" in str(table(Real(jnp.arange(16.0).reshape(4, 4))))


def test_parameters_can_be_built_inside_jit():
    values = jax.jit(lambda v: (Positive(v).value, Bounded(v, 0.0, 2.0).value, Real(v).value))(jnp.float64(0.3))
    np.testing.assert_allclose(values, 0.3, rtol=1e-12)


def test_numpy_gets_a_copy_of_its_own():
    array = np.array(Positive(jnp.asarray([1.0, 2.0])))
    array[0] = 5.0
    np.testing.assert_allclose(array, [5.0, 2.0], rtol=1e-12)
