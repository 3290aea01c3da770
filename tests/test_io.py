"""Saved models: what comes back is what was saved."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import io
import pickle
import re
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import joblib
import numpy as np
import pytest
from contracts.completeness import final_subclasses
from contracts.test_kernels import wave
from saved_models import FITS, OWN, X, deep, few_rows, one_layer, same

import dgpax
from dgpax import Fit
from dgpax.errors import InputError, ModelFileError
from dgpax.inducing import AbstractInducing
from dgpax.inference import NaturalGradient, Variational
from dgpax.io import REGISTRY
from dgpax.kernels import RBF, AbstractKernel, Warped
from dgpax.likelihoods import AbstractLikelihood
from dgpax.parameters import cast
from dgpax.posteriors import AbstractPosterior
from dgpax.prediction import predict_moments
from dgpax.storage import Names, read, write


def test_a_difference_is_seen():
    fitted = deep()
    assert same(fitted, copy.deepcopy(fitted))
    for changed in (
        eqx.tree_at(
            lambda f: f.model.likelihood.noise_variance.raw, fitted, replace_fn=lambda v: jnp.nextafter(v, 9.0)
        ),
        dataclasses.replace(fitted, num_inputs=3),
        cast(fitted, jnp.float32),
    ):
        assert not same(fitted, changed)


@pytest.mark.parametrize("name", FITS)
def test_what_is_saved_comes_back(name, tmp_path):
    fitted = FITS[name]()
    dgpax.save(fitted, tmp_path / "model", own=OWN)
    loaded = dgpax.load_model(tmp_path / "model", own=OWN)
    assert same(fitted, loaded)
    parts = [(fit.model, fit.posterior) for fit in (fitted, loaded)]
    assert jax.tree.structure(parts[0]) == jax.tree.structure(parts[1])


def predictions(fitted: Fit, num_inputs: int = 2) -> list[np.ndarray]:
    x = jnp.asarray(X[:, :num_inputs], jax.tree.leaves(fitted.posterior)[0].dtype)
    predicted = predict_moments(fitted, x)
    return [np.asarray(predicted.mean), np.asarray(predicted.variance)]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[] if n == "exact" else pytest.mark.slow)
        for n in FITS
        if n not in ("particles", "draws of locations")
    ],
)
def test_predictions_are_the_same_to_the_last_bit(name, tmp_path):
    fitted = FITS[name]()
    dgpax.save(fitted, tmp_path / "model", own=OWN)
    loaded = dgpax.load_model(tmp_path / "model", own=OWN)
    before, after = predictions(fitted, fitted.num_inputs), predictions(loaded, fitted.num_inputs)
    for one, other in zip(before, after, strict=True):
        assert np.all(np.isfinite(one)) and one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_every_class_that_can_stand_in_a_model_is_known():
    packages = {name.split(".")[0] for name in REGISTRY.known}
    classes = {kind for kind in final_subclasses(eqx.Module) if kind.__module__.split(".")[1] in packages}
    assert len(classes) > 100
    unknown = {kind for kind in classes if REGISTRY.of(kind) is None}
    assert all(issubclass(kind, dgpax.data.AbstractFeed) for kind in unknown)
    assert all(REGISTRY.find(name) is kind for name, kind in REGISTRY.known.items())


def test_the_models_of_these_tests_use_every_class_that_can_stand_in_one(tmp_path):
    used = set()
    for make in FITS.values():
        dgpax.save(make(), tmp_path / "model", own=OWN)
        used |= set(re.findall(r'\\"class\\":\\"([^\\]+)', (tmp_path / "model").read_bytes().decode("latin-1")))
    wanted = {
        name
        for base in (AbstractKernel, AbstractInducing, AbstractLikelihood, AbstractPosterior)
        for kind in final_subclasses(base)
        if (name := REGISTRY.of(kind)) is not None
    }
    assert wanted <= used


@pytest.fixture(scope="module")
def fitted() -> Fit:
    return one_layer(RBF([0.7, 0.9]))


@pytest.fixture
def path(fitted, tmp_path) -> Path:
    dgpax.save(fitted, tmp_path / "model")
    return tmp_path / "model"


def test_plain_values_come_back(tmp_path):
    value = {
        "numbers": (1, -0.0, 1e-310, float("inf"), 2**70, True, None),
        7: [jnp.asarray(2.0), jnp.broadcast_to(jnp.asarray(1.5), (2,)), np.float32(0.1), np.zeros((3, 0))],
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "strided": np.arange(12)[::-3],
        "nothing": ((), [], {}, ""),
    }
    write(tmp_path / "value", "test", value, Names({}))
    back = read(tmp_path / "value", "test", Names({}))
    assert list(back) == list(value) and all(same(back[key], value[key]) for key in value)
    assert back[7][1].weak_type and (jnp.float32(1) * back[7][1]).dtype == jnp.float32


def test_an_array_that_stands_in_two_places_is_kept_once(tmp_path):
    shared = jnp.arange(1000.0)
    write(tmp_path / "value", "test", (shared, (shared,)), Names({}))
    assert (tmp_path / "value").stat().st_size < 10_000


@pytest.mark.parametrize("value", [object(), {1, 2}, {(1,): 2}, 1j, np.array(["a"]), np.array([1j]), jr.key(0), len])
def test_what_a_file_cant_hold_is_refused_on_saving(value, tmp_path):
    with pytest.raises(ModelFileError):
        write(tmp_path / "value", "test", (value,), Names({}))
    assert not list(tmp_path.iterdir())


class Tent(AbstractKernel):
    """A kernel of a user."""

    def cross(self, x, y):
        return jnp.maximum(0.0, 1.0 - jnp.abs(x - y.mT))

    def gram(self, x):
        return self.cross(x, x)

    def diag(self, x):
        return jnp.ones(x.shape[:-1])


def test_functions_and_classes_of_ones_own_are_named_on_saving_and_loading(tmp_path):
    path = tmp_path / "model"
    for fitted, own, message in (
        (one_layer(Warped(RBF(0.5), wave)), wave, r"kernel.function is a function \(wave\)"),
        (one_layer(Tent()), Tent, r"kernel is a Tent, which isn't a class of dgpax"),
    ):
        with pytest.raises(ModelFileError, match=message):
            dgpax.save(fitted, path)
        dgpax.save(fitted, path, own=[own])
        with pytest.raises(ModelFileError, match=f"own.{own.__name__}.*passed on saving"):
            dgpax.load_model(path)
        assert same(fitted, dgpax.load_model(path, own=[own]))
    with pytest.raises(InputError, match="different names"):
        dgpax.save(fitted, path, own=[Tent, Tent])


def test_a_failed_write_leaves_what_was_there(fitted, path, monkeypatch):
    before = path.read_bytes()

    def half(arrays, metadata):
        yield before[: len(before) // 2]
        raise OSError("No space left on device")

    monkeypatch.setattr("dgpax.storage._file._as_safetensors", half)
    with pytest.raises(OSError, match="No space"):
        dgpax.save(fitted, path)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def test_64_bit_numbers_are_never_rounded(path):
    with jax.enable_x64(False), pytest.raises(ModelFileError, match="64-bit numbers are switched off"):
        dgpax.load_model(path)


CHILD = """
import sys, hashlib, numpy as np, dgpax
fitted = dgpax.load_model(sys.argv[1])
predicted = dgpax.prediction.predict_moments(fitted, np.linspace(-1.0, 1.0, 14).reshape(7, 2))
print(hashlib.sha256(np.asarray(predicted.mean).tobytes() + np.asarray(predicted.variance).tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_another_process_predicts_the_same(fitted, path):
    child = subprocess.run([sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=True)
    mean, variance = predictions(fitted)
    assert child.stdout.strip() == hashlib.sha256(mean.tobytes() + variance.tobytes()).hexdigest()


@pytest.mark.parametrize("name", ["exact", "deep", "latents by an encoder", "likelihood PerOutput"])
def test_users_can_pickle_and_joblib(name, tmp_path):
    fitted = FITS[name]()
    joblib.dump(fitted, tmp_path / "model.joblib")
    for back in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "model.joblib")):  # noqa: S301
        assert same(fitted, back)


def test_the_package_itself_never_does():
    folder = Path(dgpax.__file__).parent
    mentions = [line for file in folder.rglob("*.py") for line in file.read_text().splitlines() if "pickle" in line]
    assert all(line.count("pickle") == line.count("allow_pickle=False") for line in mentions)


@pytest.mark.slow
def test_a_trained_deep_model_with_everything(tmp_path):
    data = few_rows()
    engine = NaturalGradient(max_steps=50)
    fitted = dgpax.fit(dgpax.deep_gp(data, num_layers=2, num_inducing=5), data, Variational(), engine=engine)
    dgpax.save(fitted, tmp_path / "model")
    loaded = dgpax.load_model(tmp_path / "model")
    assert same(fitted, loaded) and str(loaded.report) == str(fitted.report)
    buffer = io.BytesIO()
    joblib.dump(loaded, buffer)
    for one, other in zip(predictions(fitted), predictions(loaded), strict=True):
        np.testing.assert_array_equal(one, other)
