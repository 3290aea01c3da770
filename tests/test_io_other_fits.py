"""Fits by STRIDE and of warped sequences in files."""

from __future__ import annotations

import numpy as np
import optax
import pytest
from contracts.completeness import final_subclasses
from numpy.testing import assert_array_equal
from saved_models import same

import dgpax
from dgpax.alignment import align, fit_warped
from dgpax.errors import ModelFileError
from dgpax.inference import Gradient
from dgpax.kernels import RBF, Matern32
from dgpax.likelihoods import Poisson
from dgpax.parameters import fixed
from dgpax.prediction import predict_moments
from dgpax.stride import (
    PCN,
    AbstractArchitecture,
    AbstractHiddenMethod,
    AbstractSampler,
    Composition,
    Convolution,
    CrossApproximation,
    EllipticalSlice,
    FullySparse,
    Injective,
    Residual,
    Schedule,
    Standard,
    Stride,
    StrideFit,
)
from dgpax.warps import IntegralWarp

pytestmark = pytest.mark.filterwarnings("ignore:The chains")

X = np.linspace(0.0, 1.0, 30)[:, None]
DATA = dgpax.dataset(X, np.sin(6 * X) + (X > 0.6))
COUNTS = dgpax.dataset(X, np.round(3 + 2 * np.sin(6 * X)))
SHORT = Schedule(num_iterations=1, num_steps=3, num_exchanges=1, num_candidates=10, warm_up=1)
STRIDE: dict[str, tuple[dgpax.Dataset, AbstractArchitecture, int | None, dict]] = {
    "a composition": (DATA, Composition(2), 6, {"hidden": Standard(), "sampler": PCN()}),
    "a residual": (DATA, Residual(1), 6, {"hidden": CrossApproximation(8), "sampler": EllipticalSlice()}),
    "a convolution": (DATA, Convolution(1), 6, {"hidden": FullySparse()}),
    "without inducing points": (DATA, Injective(1), None, {}),
    "counts": (COUNTS, Injective(1), 6, {"likelihood": Poisson()}),
}


def sampled(name: str) -> StrideFit:
    data, architecture, num_inducing, settings = STRIDE[name]
    kernel = None if "likelihood" in settings else Matern32(0.3)
    method = Stride(num_inducing, 2, schedule=SHORT, kernel=kernel, **settings)
    return dgpax.fit(architecture, data, method, progress=False)


def through_a_file(fitted, folder):
    dgpax.save(fitted, folder / "model")
    return dgpax.load_model(folder / "model")


@pytest.mark.slow
@pytest.mark.parametrize("name", STRIDE)
def test_what_stride_sampled_comes_back(name, tmp_path):
    fitted = sampled(name)
    loaded = through_a_file(fitted, tmp_path)
    assert same(fitted, loaded)
    assert_array_equal(predict_moments(fitted, X).mean, predict_moments(loaded, X).mean)


@pytest.mark.slow
def test_chains_from_a_file_go_on(tmp_path):
    fitted = sampled("a composition")
    loaded = through_a_file(fitted, tmp_path)
    before, after = (dgpax.fit(Composition(2), DATA, fit.more(1), progress=False) for fit in (fitted, loaded))
    assert_array_equal(dgpax.predict(before, X).mean, dgpax.predict(after, X).mean)


def test_every_architecture_method_and_sampler_is_saved_here():
    used = {type(value) for _, layers, _, settings in STRIDE.values() for value in (layers, *settings.values())}
    for base in (AbstractArchitecture, AbstractHiddenMethod, AbstractSampler):
        assert final_subclasses(base) <= used


ENGINE = Gradient(optimiser=optax.adam(0.01), max_steps=2, steps_per_call=2)
TIMES = np.linspace(0.0, 5.0, 12)
RATE = IntegralWarp(RBF(fixed(0.7), fixed(0.2)), np.linspace(-1.0, 1.0, 9), fixed(0.01))
PAIR = [(TIMES, np.sin(TIMES)), (TIMES, np.sin(TIMES + 0.3))]
WARPED = {
    "one sequence": lambda: fit_warped(*PAIR[0], "mean-field", warp=RATE, num_inducing=4, engine=ENGINE),
    "fully-coupled": lambda: align(PAIR, "fully-coupled", num_inducing=4, engine=ENGINE),
    "points-as-locations": lambda: align(PAIR, "points-as-locations", num_inducing=4, engine=ENGINE),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WARPED)
def test_warped_sequences_come_back(name, tmp_path):
    fitted = WARPED[name]()
    loaded = through_a_file(fitted, tmp_path)
    assert same(fitted, loaded)
    before, after = (fit.warped_draws(2, grid=TIMES[:3]) for fit in (fitted, loaded))
    assert_array_equal(before.compositions, after.compositions)


@pytest.mark.slow
def test_an_estimator_by_stride_comes_back(tmp_path):
    regressor = dgpax.DeepGPRegressor(inference="stride", num_inducing=6, max_steps=6)
    with pytest.raises(ModelFileError, match="isn't fitted yet"):
        dgpax.save(regressor, tmp_path / "model")
    regressor.fit(X, np.sin(6 * X[:, 0]))
    assert_array_equal(regressor.predict_interval(X), through_a_file(regressor, tmp_path).predict_interval(X))
