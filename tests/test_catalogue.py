"""Named datasets: only the shipped ones and files made here are needed."""

from __future__ import annotations

import dataclasses
import hashlib
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dgpax.data as dd
from dgpax.data import _catalogue, _layouts
from dgpax.errors import InputError, MissingDataError, UnknownNameError

SHIPPED = {"energy": (768, 8, 77, 22.307, 10.090), "concrete": (1030, 8, 103, 35.818, 16.706)}
OTHERS = [
    *("boston", "kin8nm", "naval", "power", "protein", "wine_red", "yacht"),
    *("mnist", "fashion_mnist_vae", "rectangles", "nycflights13_100k", "higgs_10k", "susy_low8_10k"),
    *("mcycle", "mauna_loa_co2", "airpassengers", "snelson1d", "heartbeat_pcg", "ecg"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("DGPAX_DATA", str(tmp_path))
    return tmp_path


def add_entry(monkeypatch, folder: Path, like: str, arrays: dict[str, np.ndarray]) -> None:
    """Register the set `mine`, laid out as another one, with a file made here."""
    file = folder / "mine.npz"
    np.savez(file, allow_pickle=True, **arrays)
    checksum = hashlib.sha256(file.read_bytes()).hexdigest()
    entry = dataclasses.replace(_catalogue.ENTRIES[like], name="mine", files={file.name: checksum})
    monkeypatch.setitem(_catalogue.ENTRIES, "mine", entry)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_sets_need_no_folder(name, folder):
    num_rows, num_inputs, num_test, mean, deviation = SHIPPED[name]
    data = dd.load(name)
    assert data.x.shape == (num_rows, num_inputs) and data.y.shape == (num_rows,)
    assert data.x.dtype == data.y.dtype == np.float64
    assert len(data.input_names) == num_inputs
    assert_allclose(np.mean(data.y), mean, atol=6e-4)
    assert_allclose(np.std(data.y, ddof=1), deviation, atol=6e-4)
    assert data.num_splits == 20
    assert data.licence == "CC BY 4.0" and data.citation and data.source
    train, test = data.split(3)
    assert (train.num_rows, test.num_rows) == (num_rows - num_test, num_test)
    assert train.input_names == data.input_names and train.output_names == (data.output_name,)
    assert train.x.dtype == jnp.float64


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_splits_are_the_standard_ones(name):
    """The published recipe: seed 1, one permutation per split, the last tenth is for testing."""
    data = dd.load(name)
    num_rows = len(data.y)
    generator = np.random.RandomState(1)
    for index in range(data.num_splits):
        order = generator.choice(range(num_rows), num_rows, replace=False)
        train, test = data.split(index)
        rows = order[round(0.9 * num_rows) :]
        assert_array_equal(test.x, data.x[rows])
        assert_array_equal(test.y, data.y[rows, None])
        kept = np.sort(order[: round(0.9 * num_rows)])
        assert_array_equal(train.x, data.x[kept])
        assert_array_equal(train.y, data.y[kept, None])


@pytest.mark.parametrize("index", [-1, 20])
def test_a_split_that_does_not_exist(index):
    with pytest.raises(InputError, match=f"20 standard splits; got index {index}; take an index from 0 to 19"):
        dd.load("energy").split(index)


def test_attribution_is_shipped():
    text = (Path(_catalogue.__file__).parent / "shipped" / "ATTRIBUTION.md").read_text(encoding="utf-8")
    for words in ("CC BY 4.0", "Tsanas", "Yeh", "UCI Machine Learning Repository"):
        assert words in text


def test_the_catalogue_lists_every_set():
    assert set(dd.names()) == {*SHIPPED, *OTHERS}
    rows = {row.name: row for row in dd.catalogue()}
    assert tuple(rows) == dd.names() and len(dd.catalogue()) == 21
    assert {name for name, row in rows.items() if row.shipped} == set(SHIPPED)
    assert rows["protein"].num_splits == 5 and rows["mnist"].num_splits == 1 and rows["mcycle"].num_splits == 0
    assert (rows["higgs_10k"].num_rows, rows["higgs_10k"].num_inputs) == (15000, 28)
    text = str(dd.catalogue())
    assert text.splitlines()[0].split() == ["name", "N", "D", "task", "splits", "shipped", "licence"]
    assert len(text.splitlines()) == 22
    for entry in _catalogue.ENTRIES.values():
        assert entry.licence and entry.citation and entry.source
        assert len(set(entry.input_names)) == len(entry.input_names)
        assert all(len(checksum) == 64 for checksum in entry.files.values())


def test_an_unknown_name_lists_those_there_are():
    with pytest.raises(UnknownNameError, match=r"no dataset 'housing'.*energy, concrete, boston"):
        dd.load("housing")


@pytest.mark.parametrize("name", OTHERS)
def test_a_missing_file_says_what_to_do(name, folder):
    with pytest.raises(MissingDataError) as caught:
        dd.load(name)
    message = str(caught.value)
    entry = _catalogue.ENTRIES[name]
    for words in (f"{name}.npz", str(folder), "DGPAX_DATA", entry.source, entry.files[f"{name}.npz"]):
        assert words in message


def test_a_wrong_file_is_refused(folder):
    content = b"not the file"
    (folder / "mcycle.npz").write_bytes(content)
    with pytest.raises(InputError) as caught:
        dd.load("mcycle")
    for words in ("mcycle.npz", hashlib.sha256(content).hexdigest(), _catalogue.ENTRIES["mcycle"].files["mcycle.npz"]):
        assert words in str(caught.value)


def test_pickles_are_refused(folder, monkeypatch):
    add_entry(monkeypatch, folder, "mcycle", {"X": np.array([[{}]], dtype=object), "y": np.zeros(1)})
    with pytest.raises(ValueError, match="allow_pickle=False"):
        dd.load("mine")


def test_regression_sets_become_float64(folder, monkeypatch):
    add_entry(monkeypatch, folder, "nycflights13_100k", {"X": np.arange(6, dtype=np.int16)[:, None], "y": np.arange(6)})
    data = dd.load("mine")
    assert data.x.dtype == data.y.dtype == np.float64
    assert data.num_splits == 0
    with pytest.raises(InputError, match=r"0 standard splits.*dgpax\.data\.split"):
        data.split(0)


def test_sets_with_their_own_test_set(folder, monkeypatch, rng):
    x, x_test = rng.normal(size=(5, 8)).astype(np.float32), rng.normal(size=(2, 8)).astype(np.float32)
    labels, test_labels = np.array([0, 1, 1, 0, 1], np.uint8), np.array([1, 0], np.uint8)
    add_entry(monkeypatch, folder, "susy_low8_10k", {"X": x, "y": labels, "X_test": x_test, "y_test": test_labels})
    data = dd.load("mine")
    assert data.x.dtype == np.float32 and data.y.dtype == np.uint8 and data.task == "classification"
    train, test = data.split(0)
    assert_array_equal(train.x, x)
    assert_array_equal(train.y, labels[:, None])
    assert_array_equal(test.x, x_test)
    assert_array_equal(test.y, test_labels[:, None])


def test_binary_images_are_unpacked(rng):
    train, test = rng.integers(0, 2, size=(3, 784), dtype=np.uint8), rng.integers(0, 2, size=(2, 784), dtype=np.uint8)
    contents = _layouts.binary_images(
        {
            "X_train_bits": np.packbits(train, axis=1),
            "y_train": np.zeros(3),
            "X_test_bits": np.packbits(test, axis=1),
            "y_test": np.ones(2),
        }
    )
    assert_array_equal(contents.x, np.concatenate([train, test]))
    assert_array_equal(contents.test, [[3, 4]])


def test_images_keep_train_and_test_apart():
    arrays = {"X_train": np.zeros((3, 4)), "y_train": np.zeros(3), "X_test": np.ones((1, 4)), "y_test": np.ones(1)}
    contents = _layouts.images(arrays)
    assert_array_equal(contents.x[contents.test[0]], np.ones((1, 4)))
    assert_array_equal(contents.y, [0, 0, 0, 1])


def test_electrocardiogram_has_units():
    contents = _layouts.electrocardiogram({"adc": np.array([1024, 1224, 824], np.int16), "fs": np.array(360.0)})
    assert_allclose(contents.x, [[0.0], [1 / 360], [2 / 360]])
    assert_allclose(contents.y, [0.0, 1.0, -1.0])


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "home/.cache/dgpax"),
        ("linux", {"XDG_CACHE_HOME": "/elsewhere"}, "/elsewhere/dgpax"),
        ("darwin", {}, "home/Library/Caches/dgpax"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/dgpax"),
        ("win32", {}, "home/AppData/Local/dgpax"),
        ("linux", {"DGPAX_DATA": "/mine"}, "/mine"),
    ],
)
def test_the_folder_follows_the_platform(platform, variables, expected, monkeypatch):
    for variable in ("DGPAX_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(Path, "home", lambda: Path("home"))
    monkeypatch.setattr(sys, "platform", platform)
    assert dd.data_folder() == Path(expected)
