"""Files of models that were changed, by chance or on purpose, don't load."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pytest
from forged_files import forge, metadata_of
from safetensors.numpy import load_file, save_file
from saved_models import one_layer, same

import dgpax
from dgpax import Fit
from dgpax.errors import ModelFileError
from dgpax.kernels import RBF
from dgpax.storage import FORMAT_VERSION, Names, write


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
    arrays, metadata = load_file(path), metadata_of(path)
    a, b = "model.layers[0].kernel.variance.raw", "model.likelihood.noise_variance.raw"
    arrays[a], arrays[b] = arrays[b], arrays[a]
    save_file(arrays, path, metadata=metadata)
    with pytest.raises(ModelFileError, match="checksum of the array"):
        dgpax.load_model(path)


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
