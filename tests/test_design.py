"""Criteria against brute force, and where runs are suggested."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import design as reference
from reference.regression import exact_prediction
from saved_models import FITS
from scipy.stats import norm

import dgpax
from dgpax import design
from dgpax.design import Between, OneOf, Space, Whole
from dgpax.design._beliefs import Beliefs, Runs
from dgpax.design._candidates import triangulated
from dgpax.errors import InputError, UnknownNameError
from dgpax.stride import Residual, Schedule, Stride

NOISE, LENGTHSCALE, VARIANCE = 0.04, 0.3, 1.5
BOX = [(0.0, 1.0), (0.0, 1.0)]
AT = np.random.default_rng(5).random((6, 2))


@pytest.fixture(scope="module")
def runs():
    x = np.random.default_rng(0).random((12, 2))
    return x, np.sin(5.0 * x[:, :1]) + x[:, 1:]


@pytest.fixture(scope="module")
def fitted(runs):
    """In raw units, at parameters that are known."""
    layer = dgpax.GPLayer(dgpax.kernels.RBF(np.full(2, LENGTHSCALE), VARIANCE))
    model = dgpax.freeze(dgpax.DeepGP(layer, dgpax.likelihoods.GaussianNoise(NOISE)))
    return dgpax.fit(model, dgpax.dataset(*runs), progress=False)


def beliefs_of(fitted, runs, slots=0, references=AT, num_draws=0, seed=0):
    known = Runs(jnp.asarray(runs[0]), jnp.asarray(runs[1]), jnp.ones(len(runs[0]), bool))
    return Beliefs.of(fitted, jnp.asarray(references), known, slots, seed, num_draws)


def exactly(runs, at, more=None):
    """Mean and covariance of f at rows, once it was run at more of them with any outcome."""
    x = runs[0] if more is None else np.concatenate([runs[0], more])
    y = runs[1] if more is None else np.concatenate([runs[1], np.zeros((len(more), 1))])

    def k(a, b):
        return VARIANCE * np.exp(-0.5 * np.sum((a[:, None] - b) ** 2, axis=-1) / LENGTHSCALE**2)

    mean, covariance = exact_prediction(k(x, x), k(x, at), k(at, at), y, NOISE)
    return mean[:, 0], covariance


def test_noise_is_that_of_a_run(fitted, runs):
    np.testing.assert_allclose(beliefs_of(fitted, runs).noise, NOISE, rtol=1e-8)


def test_variance_also_of_a_batch(fitted, runs):
    scores = design.Variance().scores(beliefs_of(fitted, runs), jnp.asarray(AT))
    np.testing.assert_allclose(scores, np.diag(exactly(runs, AT)[1]), rtol=1e-8)
    pending = np.array([[0.2, 0.9], [0.8, 0.1]])
    beliefs = beliefs_of(fitted, runs, slots=4)
    for row in pending:
        beliefs = beliefs.given(jnp.asarray(row))
    scores = design.Variance().scores(beliefs, jnp.asarray(AT))
    np.testing.assert_allclose(scores, np.diag(exactly(runs, AT, pending)[1]), rtol=1e-6)


def test_alc_is_what_a_run_lowers_the_variance_by(fitted, runs):
    grid = np.stack(np.meshgrid(*[(np.arange(24) + 0.5) / 24] * 2), axis=-1).reshape(-1, 2)
    scores = design.ALC().scores(beliefs_of(fitted, runs, references=grid), jnp.asarray(AT))
    before = np.diag(exactly(runs, grid)[1])
    lowered = [np.mean(before - np.diag(exactly(runs, grid, row[None])[1])) for row in AT]
    np.testing.assert_allclose(scores, lowered, rtol=1e-6)
    both = np.concatenate([grid, AT])
    covariance = exactly(runs, both)[1]
    own = reference.variance_lowered(covariance[:576, 576:], np.diag(covariance)[576:], NOISE)
    np.testing.assert_allclose(scores, own, rtol=1e-6)


def test_vigf_is_the_published_formula_in_the_exact_case(fitted, runs):
    mean, covariance = exactly(runs, AT)
    nearest = runs[1][np.argmin(np.sum((AT[:, None] - runs[0]) ** 2, axis=-1), axis=1), 0]
    scores = design.VIGF().scores(beliefs_of(fitted, runs), jnp.asarray(AT))
    np.testing.assert_allclose(scores, reference.vigf(mean, np.diag(covariance), nearest), rtol=1e-8)


def test_expected_improvement_is_that_of_a_million_draws(fitted, runs, rng):
    at_runs = exactly(runs, runs[0])[0]
    mean, covariance = exactly(runs, AT)
    draws = mean + np.sqrt(np.diag(covariance)) * rng.normal(size=(1_000_000, len(AT)))
    for maximise, best, own in ((False, at_runs.min(), draws), (True, -at_runs.max(), -draws)):
        gains = np.stack([reference.improvements(own[:, [i]], best) for i in range(len(AT))], axis=1)
        scores = design.ExpectedImprovement(maximise).scores(beliefs_of(fitted, runs), jnp.asarray(AT))
        error = gains.std(axis=0) / 1000.0
        assert np.all(np.abs(scores - gains.mean(axis=0)) < 4.5 * error + 1e-6)


@pytest.mark.slow
def test_expected_improvement_of_a_batch_adds_up_to_the_joint_one(fitted, runs, rng):
    """Over 1,000 functions of 1,000 features, whose moments are off by about 3%."""
    batch = np.array([[0.95, 0.05], [0.9, 0.1], [0.2, 0.02]])
    beliefs = beliefs_of(fitted, runs, slots=4, num_draws=32)
    functions = beliefs.parts[0].functions(1000, seed=1, num_features=1000)
    beliefs = eqx.tree_at(lambda b: b.functions, beliefs, (functions,))
    gains = []
    for row in batch:
        gains.append(float(design.ExpectedImprovement().scores(beliefs, jnp.asarray(row)[None])[0]))
        beliefs = beliefs.given(jnp.asarray(row))
    mean, covariance = exactly(runs, batch)
    draws = rng.multivariate_normal(mean, covariance, size=1_000_000)
    joint = reference.improvements(draws, exactly(runs, runs[0])[0].min())
    assert abs(sum(gains) - joint.mean()) < 4.5 * joint.std() * np.sqrt(1 / 1000 + 1e-6) + 0.03 * joint.mean()
    alone = design.ExpectedImprovement().scores(beliefs_of(fitted, runs), jnp.asarray(batch))
    assert gains[1] < 0.7 * alone[1]


def test_entropy_of_a_contour(fitted, runs):
    mean, covariance = exactly(runs, AT)
    p = norm.cdf((0.7 - mean) / np.sqrt(np.diag(covariance)))
    scores = design.ContourEntropy(0.7).scores(beliefs_of(fitted, runs), jnp.asarray(AT))
    np.testing.assert_allclose(scores, reference.binary_entropy(p), rtol=1e-6)


def test_thompson_takes_another_function_for_every_run_of_a_batch(fitted, runs):
    beliefs = beliefs_of(fitted, runs, slots=4, num_draws=32)
    values, x = beliefs.draws(jnp.asarray(AT))[0][..., 0], jnp.asarray(AT)
    first = design.Thompson().scores(beliefs, x)
    second = design.Thompson().scores(beliefs.given(x[0]), x)
    of_first, of_second = (int(jnp.argmin(jnp.sum((values + s) ** 2, axis=1))) for s in (first, second))
    assert of_first != of_second
    np.testing.assert_allclose(first, -values[of_first])


@pytest.mark.parametrize(
    "bounds, message",
    [
        ([(1.0, 0.0)], "upside down"),
        ([(2.0, 2.0)], "constant"),
        ([(0.0, np.inf)], "finite"),
        ([], "empty"),
        ([3.0], "pair"),
        ([Whole(0, 2.5)], "whole numbers"),  # pyright: ignore[reportArgumentType]
        ([OneOf(("red",))], "two values"),
        ([OneOf(("red", 1.0))], "mix words and numbers"),
        (np.zeros((3, 3)), "shape"),
        ("box", "list or dictionary"),
    ],
)
def test_bounds_that_are_none(bounds, message):
    with pytest.raises(InputError, match=message):
        Space.of(bounds)


def test_a_box_of_every_kind():
    space = Space.of(
        {"size": (1.0, 3.0), "count": Whole(2, 4), "level": OneOf((0.1, 10.0)), "place": OneOf(("b", "a"))}
    )
    assert space.columns == ("size", "count", "level", "place=a", "place=b")
    assert space.free.tolist() == [True, False, False, False] and space.size == np.inf
    u = space.snapped(np.random.default_rng(0).random((50, 4)))
    rows = np.asarray(space.rows(jnp.asarray(u)))
    np.testing.assert_allclose(space.units(rows), u, atol=1e-12)
    words = space.words(rows)
    np.testing.assert_allclose(space.encoded(words), rows, atol=1e-12)
    assert {word["count"] for word in words} == {2, 3, 4} and {word["place"] for word in words} == {"a", "b"}
    assert isinstance(space.dimensions[0], Between)
    for row, message in (
        ({"size": 1.0}, "no count"),
        ([1.0, 2.5, 0.1, "a"], "whole"),
        ([1.0, 2, 0.1, "c"], "there are"),
    ):
        with pytest.raises(InputError, match=message):
            space.encoded([row])


@pytest.mark.parametrize("D", [1, 2, 3])
def test_candidates_between_runs_lie_inside_the_box(D, rng):
    found = triangulated(rng.random((15, D)), rng)
    assert len(found) > 15 - D and np.all((found >= 0) & (found <= 1))


def test_no_triangulation_of_points_in_a_plane(rng):
    assert len(triangulated(np.repeat(rng.random((9, 1)), 2, axis=1), rng)) == 0


def test_suggestions_are_inside_new_and_the_same_again(fitted, runs):
    rows = design.suggest(fitted, BOX, 3, data=runs, seed=4)
    assert rows.shape == (3, 2) and np.all((rows >= 0) & (rows <= 1))
    every = np.concatenate([runs[0], rows])
    distances = np.max(np.abs(every[:, None] - every), axis=-1) + np.eye(len(every))
    assert distances.min() > 1e-6
    np.testing.assert_array_equal(rows, design.suggest(fitted, BOX, 3, data=dgpax.dataset(*runs), seed=4))


def test_the_ascent_ends_above_a_dense_grid(fitted, runs):
    """Of 10,000 points, none is better by more than a hundredth."""
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 100)] * 2), axis=-1).reshape(-1, 2)
    found = design.propose(fitted, BOX, 1, "variance", data=runs)
    assert found.worth[0] > 0.99 * np.diag(exactly(runs, grid)[1]).max()


def test_constraints_pending_runs_and_failures(fitted, runs):
    def right(rows):
        return rows[:, 0] + rows[:, 1] < 0.8

    free = design.suggest(fitted, BOX, data=runs)
    within = design.suggest(fitted, BOX, 2, data=runs, constraints=right)
    assert right(within).all()
    other = design.suggest(fitted, BOX, data=runs, pending=free)
    assert np.max(np.abs(other - free)) > 0.1
    near = free + 0.02 * np.random.default_rng(1).normal(size=(6, 2))
    failed = np.concatenate([runs[0], near]), np.concatenate([runs[1], np.full((6, 1), np.nan)])
    assert np.linalg.norm(design.suggest(fitted, BOX, data=failed) - free) > 0.1
    with pytest.raises(InputError, match="satisfies the constraints"):
        design.suggest(fitted, BOX, constraints=lambda rows: rows[:, 0] > 2.0)
    with pytest.raises(InputError, match="truth values"):
        design.suggest(fitted, BOX, constraints=lambda rows: rows)


def test_a_finite_box_is_exhausted_and_no_more(fitted, runs):
    box = [Whole(0, 1), OneOf((0.0, 0.5, 1.0))]
    rows = design.suggest(fitted, box, 5, data=([[1.0, 0.5]], [0.3]))
    assert len(np.unique(rows, axis=0)) == 5 and [1.0, 0.5] not in rows.tolist()
    with pytest.raises(InputError, match="of 6 different rows"):
        design.suggest(fitted, box, 6, data=([[1.0, 0.5]], [0.3]))


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"bounds": [(0.0, 1.0)]}, InputError, "the model has 2"),
        ({"n": 0}, InputError, "at least 1"),
        ({"criterion": "best"}, UnknownNameError, "variance, alc"),
        ({"criterion": "entropy"}, InputError, "needs a level"),
        ({"criterion": "vigf"}, InputError, "needs the runs"),
        ({"data": ([[0.0]], [1.0])}, InputError, "runs so far"),
        ({"data": ([[0.0, 1.0]], [[1.0, 2.0]])}, InputError, "1 latent functions for 2 columns"),
        ({"criterion": design.ExpectedImprovement(output=2)}, InputError, "about one of them"),
    ],
)
def test_arguments_that_are_wrong(fitted, arguments, error, message):
    with pytest.raises(error, match=message):
        design.suggest(fitted, **{"bounds": BOX, **arguments})


def stride():
    data = dgpax.dataset(np.random.default_rng(0).random((20, 2)), np.random.default_rng(1).random(20))
    schedule = Schedule(num_iterations=1, num_steps=3, num_exchanges=1, num_candidates=10, warm_up=1)
    return dgpax.fit(Residual(1), data, Stride(6, 2, schedule=schedule), progress=False)


def ensemble():
    return dgpax.fits.Ensemble([FITS["exact"](), FITS["deep"]()], [0.3, 0.7])


WHATEVER_INFERRED = {
    **{name: FITS[name] for name in ("coupled", "chain", "locations", "particles", "collapsed")},
    "stride": stride,
    "ensemble": ensemble,
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chains")
@pytest.mark.parametrize("name", WHATEVER_INFERRED)
def test_whatever_inferred_the_model(name, runs):
    """Scores and slopes of a batch are finite: by moments, jointly and by functions; a second fit compiles nothing."""
    x = jnp.asarray(AT[:3])
    seen = []

    @eqx.filter_jit
    def slopes(beliefs, x):
        seen.append(True)
        criteria = (design.Variance(), design.ALC(), design.ExpectedImprovement())
        return [jax.value_and_grad(lambda x, own=own: jnp.sum(own.scores(beliefs, x)))(x) for own in criteria]

    for fitted in (WHATEVER_INFERRED[name](), WHATEVER_INFERRED[name]()):
        beliefs = beliefs_of(fitted, runs, slots=2, num_draws=4).given(jnp.asarray(AT[5]))
        for value, slope in slopes(beliefs, x):
            assert np.isfinite(value) and value >= 0 and np.all(np.isfinite(slope))
    assert len(seen) == 1
