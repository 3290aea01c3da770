"""Saved models: what comes back is what was saved, and what was tampered with doesn't come back."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import io
import json
import pickle
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import joblib
import numpy as np
import pytest
from contracts.completeness import final_subclasses
from contracts.test_covariances import PAIRS
from contracts.test_kernels import KERNELS, wave, with_squares
from contracts.test_kernels import build as build_kernel
from contracts.test_likelihoods import LIKELIHOODS
from safetensors.numpy import load_file, save_file

import dgpax
from dgpax import DeepGP, Fit, GPLayer
from dgpax.errors import InputError, ModelFileError
from dgpax.inducing import AbstractInducing, Points
from dgpax.inference import FitReport, NaturalGradient, Variational
from dgpax.io import REGISTRY
from dgpax.kernels import LMC, RBF, AbstractKernel, AbstractMultiOutputKernel, ImageToImage, Warped
from dgpax.layers import AppendInputs, LatentVariables
from dgpax.likelihoods import AbstractLikelihood, GaussianNoise
from dgpax.means import Constant, Identity, Zero
from dgpax.parameters import GammaPrior, Positive, cast, partition
from dgpax.posteriors import (
    AbstractCarry,
    AbstractPosterior,
    Chain,
    Coupled,
    Encoder,
    Exact,
    MeanField,
    Particles,
    PointsAsLocations,
    RowLatents,
    optimal_posterior,
)
from dgpax.prediction import predict_moments
from dgpax.storage import FORMAT_VERSION, Names, read, write

X = np.linspace(-1.0, 1.0, 14).reshape(7, 2)
OWN = (wave, with_squares)
REPORT = FitReport(
    inference="Variational",
    engine="None",
    num_rows=3,
    num_parameters=2,
    steps=0,
    seconds=0.5,
    objective_start=float("nan"),
    objective_end=-np.inf,
    stopped_because="\u201cthere\u201d was nothing\n",
    converged=True,
    interrupted=False,
    resumed_at=(25,),
    rejected_steps=0,
    largest_jitter=1e-300,
    clipped_variances=0,
    constant_columns=("a \U0001f600 \u0000 column",),
    notes=(),
    history=np.array([np.nan, -0.0, 1e-310]),
)


def with_posterior(model: DeepGP, latents=(), num_inputs: int = 2) -> Fit:
    """A fit that nobody trained: a mean-field posterior away from the prior."""
    posterior = MeanField.at_prior(model.layers, inner_scale=0.3, latents=latents)
    return Fit(model, _moved(posterior), REPORT, num_inputs, ())


def _moved(posterior: AbstractPosterior) -> AbstractPosterior:
    rng = np.random.default_rng(0)
    trained, rest = partition(posterior)
    moved = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf) + 0.1 * rng.normal(size=leaf.shape)), trained)
    return eqx.combine(moved, rest)


def one_layer(kernel: AbstractKernel, inducing=None, num_outputs: int = 1, likelihood=None, num_inputs=2) -> Fit:
    inducing = Points(np.linspace(-1, 1, 8).reshape(4, 2)) if inducing is None else inducing
    layer = GPLayer(kernel, num_outputs, Zero(), inducing)
    return with_posterior(DeepGP(layer, likelihood or GaussianNoise(0.1)), num_inputs=num_inputs)


def _num_outputs(kernel: AbstractKernel) -> int:
    if isinstance(kernel, LMC):
        return 3
    if isinstance(kernel, ImageToImage):
        return 6
    return 2 if isinstance(kernel, AbstractMultiOutputKernel) else 1


def _of_pair(pair) -> Fit:
    inducing, kernel = PAIRS[pair]()
    num_inputs = 1 if pair[0].__name__ == "Fourier" else 2
    return one_layer(kernel, inducing, _num_outputs(kernel), num_inputs=num_inputs)


def _of_likelihood(kind) -> Fit:
    row = LIKELIHOODS[kind]()
    return one_layer(RBF(0.7), num_outputs=row.likelihood.num_latents(row.y.shape[1]), likelihood=row.likelihood)


def _latent(latents) -> Fit:
    layers = [
        LatentVariables(1),
        GPLayer(RBF(0.8), 2, Constant(0.3), Points(np.ones((3, 3)) * np.arange(3.0)[:, None])),
    ]
    last = GPLayer(
        RBF(Positive(0.9, prior=GammaPrior(2.0, 1.0))), 1, Zero(), Points(np.linspace(0, 1, 8).reshape(4, 2))
    )
    return with_posterior(DeepGP([*layers, last], GaussianNoise(0.1)), [latents])


def _deep() -> Fit:
    z = np.linspace(-1, 1, 8).reshape(4, 2)
    layers = [GPLayer(RBF(0.8), 2, Identity(), Points(z)), AppendInputs()]
    return with_posterior(
        DeepGP([*layers, GPLayer(RBF(1.0), 1, Zero(), Points(np.hstack([z, z])))], GaussianNoise(0.1))
    )


def _data() -> dgpax.Dataset:
    return dgpax.dataset(X, np.sin(3 * X[:, 0]) + X[:, 1])


def _conjugate(inference: str) -> Fit:
    data = _data()
    model = dgpax.gp_regression(data) if inference == "exact" else dgpax.sparse_gp_regression(data, 4)
    solve = Exact.condition if inference == "exact" else optimal_posterior
    return Fit(model, eqx.filter_jit(solve)(model, model.to_model_units(data)), REPORT, 2, ("a", "b"))


def _coupled(family: Any = Coupled) -> Fit:
    model = _deep().model
    posterior = family.at_prior(model.layers, inner_scale=0.3)
    return Fit(model, _moved(posterior), REPORT, 2, ())


def _locations(drawn: bool) -> Fit:
    first, _, last = _deep().model.layers
    model = DeepGP([first, dataclasses.replace(last, inducing=first.inducing)], GaussianNoise(0.1))
    posterior = PointsAsLocations.at_prior(model.layers)
    return Fit(model, posterior.layerwise(jr.key(0), (5,)) if drawn else _moved(posterior), REPORT, 2, ())


def _particles() -> Fit:
    blocks = (jr.normal(jr.key(0), (5, 2, 4)), None, jr.normal(jr.key(1), (5, 1, 4)))
    return Fit(_deep().model, Particles(blocks), REPORT, 2, ())


FITS = {
    **{f"kernel {kind.__name__}": lambda kind=kind: one_layer(build_kernel(kind)) for kind in KERNELS},
    **{f"likelihood {kind.__name__}": lambda kind=kind: _of_likelihood(kind) for kind in LIKELIHOODS},
    **{f"{u.__name__} of {k.__name__}": lambda pair=(u, k): _of_pair(pair) for u, k in PAIRS},
    "latents of rows": lambda: _latent(RowLatents.start(7, 1, jnp.float64)),
    "latents by an encoder": lambda: _latent(Encoder.start(2, 1, 1, jr.key(0), hidden=(4,))),
    "deep": _deep,
    "coupled": _coupled,
    "chain": lambda: _coupled(Chain),
    "locations": lambda: _locations(drawn=False),
    "draws of locations": lambda: _locations(drawn=True),
    "particles": _particles,
    "exact": lambda: _conjugate("exact"),
    "collapsed": lambda: _conjugate("sparse"),
    "float32": lambda: cast(_deep(), jnp.float32),
}


def same(a, b) -> bool:
    """Whether two values are the same to the last bit, types included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, jax.Array | np.ndarray | np.generic):
        weak = isinstance(a, jax.Array) and a.weak_type != b.weak_type
        return (
            not weak
            and a.dtype == b.dtype
            and a.shape == b.shape
            and np.asarray(a).tobytes() == np.asarray(b).tobytes()
        )
    if dataclasses.is_dataclass(a):
        return all(same(getattr(a, field.name), getattr(b, field.name)) for field in dataclasses.fields(a))
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    return a is b or a == b or (a != a and b != b)


def test_a_difference_is_seen():
    fitted = _deep()
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
    of_one_pass = {kind.__name__ for kind in final_subclasses(AbstractCarry)} | {"DrawnLayer", "RowMatrix"}
    assert len(classes) > 80
    assert not {kind.__name__ for kind in classes if REGISTRY.of(kind) is None} - of_one_pass
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


def flip_bits(rng, raw):
    for position in rng.integers(len(raw), size=rng.integers(1, 4)):
        raw[position] ^= 1 << int(rng.integers(8))


def flip_a_bit_of_the_header(rng, raw):
    raw[rng.integers(8)] ^= 1 << int(rng.integers(8))


def truncate(rng, raw):
    del raw[rng.integers(len(raw)) :]


def extend(rng, raw):
    raw.extend(rng.bytes(rng.integers(1, 100)))


def remove_some(rng, raw):
    at = rng.integers(len(raw))
    del raw[at : at + rng.integers(1, 60)]


def swap_parts(rng, raw):
    length = int(rng.choice([1, 8, 64]))
    a, b = rng.integers(len(raw) - length, size=2)
    raw[a : a + length], raw[b : b + length] = raw[b : b + length], raw[a : a + length]


def huge_header(rng, raw):
    raw[:8] = struct.pack("<Q", int(rng.choice([2**63, 2**40, 2**31, len(raw), 100_000_001, 0])))


HOSTILE = [b"../../../etc/passwd", b"/etc/passwd", b"9999999999999", b"-1", b"builtins.eval", b"os.system", b"\x00"]
TARGETS = [b"F64", b"kernels.RBF", b"data_offsets", b"raw", b"shape", b"structure", b"dgpax model", b"sha256", b"[0"]


def hostile_words(rng, raw):
    """A word of the header becomes another, and the header's length follows."""
    word, other = TARGETS[rng.integers(len(TARGETS))], HOSTILE[rng.integers(len(HOSTILE))]
    places = [match.start() for match in re.finditer(re.escape(word), bytes(raw))]
    at = int(rng.choice(places))
    raw[at : at + len(word)] = other
    raw[:8] = struct.pack("<Q", struct.unpack("<Q", raw[:8])[0] + len(other) - len(word))


MUTATIONS = [
    flip_bits, flip_a_bit_of_the_header, truncate, extend, remove_some, swap_parts, huge_header, hostile_words
]  # fmt: skip


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_file_that_was_changed_is_refused_or_is_still_the_same(mutation, fitted, path):
    rng, original, refused = np.random.default_rng(0), path.read_bytes(), 0
    for _ in range(130):
        raw = bytearray(original)
        mutation(rng, raw)
        path.write_bytes(raw)
        try:
            assert same(dgpax.load_model(path), fitted)
        except ModelFileError:
            refused += 1
    assert refused >= 100


def test_swapped_arrays_are_refused(path):
    arrays, metadata = load_file(path), _metadata(path)
    a, b = "model.layers[0].kernel.variance.raw", "model.likelihood.noise_variance.raw"
    arrays[a], arrays[b] = arrays[b], arrays[a]
    save_file(arrays, path, metadata=metadata)
    with pytest.raises(ModelFileError, match="checksum of the array"):
        dgpax.load_model(path)


def _metadata(path) -> dict[str, str]:
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8 : 8 + length])["__metadata__"]


def forge(path, change, **metadata):
    """Change the structure and make the checksums right again, as an attacker would."""
    given = _metadata(path)
    contents = json.loads(given["contents"])
    contents = change(contents) or contents
    text = contents if isinstance(contents, str) else json.dumps(contents)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    save_file(load_file(path), path, metadata={**given, "contents": text, "sha256": checksum, **metadata})


def _set(*keys, to):
    def change(contents):
        node = contents
        for key in keys[:-1]:
            node = node[key]
        node[keys[-1]] = to

    return change


MODEL = ("structure", "fields", "model")
FORGED = {
    "isn't in dgpax": _set(*MODEL, "class", to="os.system"),
    "builtins.eval": _set("structure", "fields", "num_inputs", to={"kind": "named", "name": "builtins.eval"}),
    "differs in scaling, shape": _set(*MODEL, "fields", to={"layers": [], "likelihood": None, "shape": 3}),
    "isn't understood": _set(*MODEL, to={"kind": "call", "items": []}),
    "a part that isn't": _set(*MODEL, to={"kind": "list", "items": [], "more": 1}),
    "dictionary entry": _set(*MODEL, to={"kind": "dict", "items": [[[1], 2]]}),
    "holds a DeepGP": lambda contents: {**contents, "structure": contents["structure"]["fields"]["model"]},
    "an array of 'gpu'": _set(
        "structure", "fields", "model", to={"kind": "array", "name": "report.history", "of": "gpu"}
    ),
    "nested too deeply": lambda contents: '{"arrays":{},"structure":' + "[" * 100_000 + "]" * 100_000 + "}",
    "isn't JSON": lambda contents: "{",
    "holds NaN": lambda contents: '{"arrays":{},"structure":NaN}',
    "isn't one of dgpax": lambda contents: [1],
    "aren't those of its structure": _set("arrays", to={}),
    "another type or shape": _set("arrays", "report.history", "shape", to=[10**15]),
}


@pytest.mark.parametrize("message", FORGED)
def test_a_forged_file_is_refused(message, path):
    forge(path, FORGED[message])
    with pytest.raises(ModelFileError, match=re.escape(message)):
        dgpax.load_model(path)


def test_other_versions_and_kinds_are_refused(path, tmp_path):
    forge(path, lambda contents: None, version=str(FORMAT_VERSION + 1))
    with pytest.raises(ModelFileError, match="format version is 2, this dgpax reads 1"):
        dgpax.load_model(path)
    write(path, "dgpax checkpoint", (1, 2), Names({}))
    with pytest.raises(ModelFileError, match="isn't a dgpax model but 'dgpax checkpoint'"):
        dgpax.load_model(path)
    save_file({"a": np.zeros(3)}, path)
    for other in (path, tmp_path / "nowhere", tmp_path):
        with pytest.raises(ModelFileError):
            dgpax.load_model(other)


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
        (one_layer(Tent()), Tent, r"kernel is a Tent, which isn't a public class of dgpax"),
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

    def half(arrays, file, metadata):
        Path(file).write_bytes(before[: len(before) // 2])
        raise OSError("No space left on device")

    monkeypatch.setattr("dgpax.storage._file.save_file", half)
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
    data = _data()
    engine = NaturalGradient(max_steps=50)
    fitted = dgpax.fit(dgpax.deep_gp(data, num_layers=2, num_inducing=5), data, Variational(), engine=engine)
    dgpax.save(fitted, tmp_path / "model")
    loaded = dgpax.load_model(tmp_path / "model")
    assert same(fitted, loaded) and str(loaded.report) == str(fitted.report)
    buffer = io.BytesIO()
    joblib.dump(loaded, buffer)
    for one, other in zip(predictions(fitted), predictions(loaded), strict=True):
        np.testing.assert_array_equal(one, other)
