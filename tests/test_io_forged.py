"""Files that are well-formed, with right checksums, and still no fits: refused in words, or they can be used."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forged_files import at, forge, listed, metadata_of, mutate, places, put
from safetensors.numpy import load_file, save_file
from saved_models import FITS, deep, one_layer, same

import dgpax
from dgpax.data import Encoding
from dgpax.errors import ModelFileError
from dgpax.io import REGISTRY
from dgpax.kernels import RBF
from dgpax.prediction import predict_moments
from dgpax.storage import Names, read, write

CLASSES = sorted(REGISTRY.known)
OF_A_FIT = ("structure", "fields")


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("original") / "model"
    dgpax.save(deep(), path)
    return path


@pytest.fixture
def path(original, tmp_path) -> Path:
    return Path(shutil.copy(original, tmp_path / "model"))


def refused_or_used(name: str, path: Path, seeds: range, *, use: bool) -> int:
    """How many random changes of a file were refused; no other ends in anything but a prediction, if it is to `use`."""
    fitted, refused = FITS[name](), 0
    dgpax.save(fitted, path)
    kept = path.read_bytes()
    for seed in seeds:
        path.write_bytes(kept)
        mutate(np.random.default_rng(seed), path, CLASSES)
        try:
            loaded = dgpax.load_model(path)
        except ModelFileError:
            refused += 1
            continue
        if use and loaded.num_inputs:
            predict_moments(loaded, np.zeros((2, loaded.num_inputs)), num_samples=5)
        assert str(loaded.report)
    return refused


def test_random_changes_of_a_structure(tmp_path):
    assert refused_or_used("kernel RBF", tmp_path / "model", range(25), use=False) > 10


@pytest.mark.slow
@pytest.mark.parametrize("name", ["deep", "coupled", "kernel Convolutional", "likelihood PerOutput"])
def test_more_random_changes_of_a_structure(name, tmp_path):
    assert refused_or_used(name, tmp_path / "model", range(1000, 1030), use=True) > 15


def first(contents, **wanted):
    """Where the first part with these entries stands."""
    structure = contents["structure"]
    for place in places(structure):
        node = at(structure, place)
        if isinstance(node, dict) and all(node.get(key) == value for key, value in wanted.items()):
            return node
    raise LookupError(wanted)


def field(name, value, **of):
    def change(contents):
        first(contents, **of)["fields"][name] = value

    return change


MEAN = {"kind": "record", "class": "means.Zero", "fields": {}}
FORGED = {
    "num_outputs is 2.5 of type float": field("num_outputs", 2.5, **{"class": "layers.GPLayer"}),
    "num_outputs is True of type bool": field("num_outputs", True, **{"class": "layers.GPLayer"}),
    "must be at least 1; got -3": field("num_outputs", -3, **{"class": "layers.GPLayer"}),
    "parts don't fit together": field("num_outputs", 3, **{"class": "layers.GPLayer"}),
    "with a number of": field("num_outputs", 10**15, **{"class": "layers.GPLayer"}),
    "has the floor -1": field("floor", -1.0, **{"class": "parameters.Positive"}),
    "has the floor nan": field("floor", {"kind": "float", "value": "nan"}, **{"class": "parameters.Positive"}),
    "trainable is 1 of type int": field("trainable", 1, **{"class": "parameters.Positive"}),
    "kernel is": field("kernel", MEAN, **{"class": "layers.GPLayer"}),
    "names for": field("input_names", ["a"], **{"class": "fits.Fit"}),
    "it has -2 inputs": field("num_inputs", -2, **{"class": "fits.Fit"}),
    "no layers": field("layers", [], **{"class": "model.DeepGP"}),
    "history is": field("history", 3, **{"class": "fits.FitReport"}),
    "more than 200": lambda contents: put(
        contents, (*OF_A_FIT, "report", "fields", "details"), json.loads("[" * 500 + "]" * 500)
    ),
    "twice, as one of": lambda contents: first(contents, name="model.layers[0].kernel.variance.raw").update(
        name="report.history"
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", FORGED)
def test_what_cant_be_is_refused_in_words(message, path):
    forge(path, FORGED[message])
    with pytest.raises(ModelFileError, match=message):
        dgpax.load_model(path)


def test_numbers_that_cant_be_are_refused(path):
    arrays, kept = load_file(path), path.read_bytes()
    for name, change, message in (
        ("model.layers[0].kernel.variance.raw", lambda raw: np.full_like(raw, np.nan), "numbers that aren't finite"),
        ("posterior.blocks[0].root.raw", lambda raw: raw[:, :2], "LowerTriangular has the shape"),
        ("posterior.blocks[0].mean.raw", lambda raw: raw[:, :3], "parts don't fit together"),
        ("report.history", lambda raw: raw[None], "the history in its report"),
    ):
        path.write_bytes(kept)
        changed = {**arrays, name: np.ascontiguousarray(change(arrays[name]))}
        forge(path, lambda contents, changed=changed: contents.update(arrays=listed(changed)), changed)
        with pytest.raises(ModelFileError, match=message):
            dgpax.load_model(path)


def test_truth_values_that_are_neither_are_refused(tmp_path):
    write(tmp_path / "value", "test", (np.zeros(3, bool),), Names({}))
    raw = tmp_path.joinpath("value").read_bytes()
    tmp_path.joinpath("value").write_bytes(raw[:-3] + b"\x02\x00\x00")
    arrays = {"[0]": np.frombuffer(b"\x02\x00\x00", bool)}
    forge(tmp_path / "value", lambda contents: contents.update(arrays=listed(arrays)), arrays)
    with pytest.raises(ModelFileError, match="neither true nor false"):
        read(tmp_path / "value", "test", Names({}))


def test_an_array_that_stands_in_many_places_is_one_array(tmp_path):
    shared, own = np.arange(5.0), np.arange(4.0)
    write(tmp_path / "value", "test", (shared, [shared, (own,)]), Names({}))
    a, (b, (c,)) = read(tmp_path / "value", "test", Names({}))
    assert a is b and a is not c


def test_what_is_nested_too_deeply_cant_be_saved(tmp_path):
    value = ()
    for _ in range(300):
        value = (value,)
    with pytest.raises(ModelFileError, match="nested"):
        write(tmp_path / "value", "test", value, Names({}))


def test_a_folder_that_isnt_there_is_named_and_nothing_is_made(tmp_path):
    fitted = one_layer(RBF())
    with pytest.raises(ModelFileError, match=r"there is no folder .*nowhere\. Make it first"):
        dgpax.save(fitted, tmp_path / "nowhere" / "model.dgpax")
    with pytest.raises(ModelFileError, match="it is a folder"):
        dgpax.save(fitted, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def estimator(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("estimator") / "model"
    fitted, encoding = one_layer(RBF(0.7)), Encoding.of(np.arange(6.0).reshape(3, 2))
    regressor: Any = dgpax.DeepGPRegressor()  # as `fit` leaves it
    regressor.fit_, regressor.encoding_, regressor.n_features_in_ = fitted, encoding, 2
    regressor.n_outputs_, regressor._is_single, regressor.num_rows_seen_ = 1, True, 3.0
    dgpax.save(regressor, path)
    return path


def learnt(name, value):
    def change(contents):
        pairs = contents["structure"]["fields"]["learnt"]["items"]
        pairs[:] = [[key, value if key == name else old] for key, old in pairs]

    return change


@pytest.mark.parametrize(
    ("message", "name", "value"),
    [
        ("3 features and an encoding of 2", "n_features_in_", 3),
        ("its n_features_in_ is a str", "n_features_in_", "1"),
        ("7 outputs and its fit 1", "n_outputs_", 7),
        ("its encoding_ is a NoneType", "encoding_", None),
        ("without a fitted model", "fit_", 3),
    ],
)
def test_estimators_that_cant_be_are_refused(message, name, value, estimator, tmp_path):
    path = shutil.copy(estimator, tmp_path / "model")
    dgpax.load_model(path)
    forge(Path(path), learnt(name, value))
    with pytest.raises(ModelFileError, match=message):
        dgpax.load_model(path)


def test_files_of_before_still_load(tmp_path):
    """The bytes that safetensors itself wrote are read as those that dgpax writes now."""
    fitted = deep()
    dgpax.save(fitted, tmp_path / "now")
    save_file(load_file(tmp_path / "now"), tmp_path / "then", metadata=metadata_of(tmp_path / "now"))
    assert same(dgpax.load_model(tmp_path / "then"), fitted)


def many_references(contents, arrays):
    """3,000 times the same array of a megabyte."""
    arrays["big"] = np.zeros(130_000)
    contents["arrays"] = listed(arrays)
    node = {"kind": "array", "name": "big", "of": "jax"}
    put(
        contents,
        (*OF_A_FIT, "report", "fields", "details"),
        {"kind": "dict", "items": [[str(i), node] for i in range(3000)]},
    )


def many_arrays(contents, arrays):
    arrays |= {f"a{i}": np.zeros(1) for i in range(6_000)}
    contents["arrays"] = listed(arrays)
    nodes = [[str(i), {"kind": "array", "name": f"a{i}", "of": "jax"}] for i in range(6_000)]
    put(contents, (*OF_A_FIT, "report", "fields", "details"), {"kind": "dict", "items": nodes})


def many_weak_shapes(contents, arrays):
    arrays |= {f"a{i}": np.zeros(i) for i in range(1, 600)}
    contents["arrays"] = listed(arrays)
    nodes = [[str(i), {"kind": "array", "name": f"a{i}", "of": "weak"}] for i in range(1, 600)]
    put(contents, (*OF_A_FIT, "report", "fields", "details"), {"kind": "dict", "items": nodes})


def empty_tuples(contents, arrays):
    put(contents, (*OF_A_FIT, "report", "fields", "details"), {"kind": "dict", "items": [["0", [[]] * 400_000]]})


def lists_of_lists(contents, arrays):
    empty = {"kind": "list", "items": []}
    put(contents, (*OF_A_FIT, "report", "fields", "details"), {"kind": "dict", "items": [["0", [empty] * 40_000]]})


def many_layers(contents, arrays):
    fields = contents["structure"]["fields"]
    layers, blocks = fields["model"]["fields"]["layers"], fields["posterior"]["fields"]["blocks"]
    layers[:], blocks[:] = layers[:1] * 300 + layers[1:], blocks[:1] * 300 + blocks[1:]


def deep_kernel(contents, arrays):
    layer = contents["structure"]["fields"]["model"]["fields"]["layers"][0]["fields"]
    for _ in range(60):
        layer["kernel"] = {"kind": "record", "class": "kernels.Sum", "fields": {"kernels": [layer["kernel"]] * 2}}
        if len(json.dumps(layer)) > 800_000:
            break


def wide(number):
    def change(contents, arrays):
        layer = contents["structure"]["fields"]["model"]["fields"]["layers"][-1]["fields"]
        layer["num_outputs"] = number
        contents["structure"]["fields"]["num_inputs"] = number

    return change


BOMBS = {
    "many references": many_references, "many arrays": many_arrays, "many weak shapes": many_weak_shapes,
    "empty tuples": empty_tuples, "lists of lists": lists_of_lists, "many layers": many_layers,
    "deep kernel": deep_kernel, "wide": wide(200_000), "wider": wide(2**31), "widest": wide(2**62),
}  # fmt: skip


def bomb(name: str, path: Path) -> None:
    arrays = load_file(path)
    forge(path, lambda contents: BOMBS[name](contents, arrays), arrays)


def set_off(original: str, folder: str) -> None:
    """In a process of its own: name, seconds of processors and megabytes of every load."""
    path = Path(folder) / "model"
    dgpax.load_model(original)
    for name in BOMBS:
        shutil.copy(original, path)
        bomb(name, path)
        assert path.stat().st_size < 2_000_000, name
        before, began, said = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time(), "loaded"
        try:
            dgpax.load_model(path)
        except ModelFileError as error:
            said = f"refused: {error}"
        megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(json.dumps([name, time.process_time() - began, megabytes, said[:200]]), flush=True)


@pytest.mark.slow
def test_no_small_file_takes_long_or_much_memory(original, tmp_path):
    """The process has no compiled checks of types, which take a time of their own."""
    code = "import sys; from test_io_forged import set_off; set_off(*sys.argv[1:])"
    command = [sys.executable, "-c", code, str(original), str(tmp_path)]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(BOMBS)
    for name, seconds, megabytes, said in found:
        assert seconds < 3 and megabytes < 200, (name, seconds, megabytes, said)
