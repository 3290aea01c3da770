"""Masks, NaT, units, extension types and None: one reader for `dataset`, X, y and weights."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

import dgpax
from dgpax import DeepGPClassifier, DeepGPRegressor
from dgpax.data import Encoding
from dgpax.errors import InputError, InputTypeError
from dgpax.estimators._targets import read_labels, read_numbers
from dgpax.inference import as_seed, check_count

N = 6
X = np.linspace(0.0, 1.0, N)[:, None]
Y = np.sin(X[:, 0])
HIDDEN = np.where(np.arange(N) == 2, 1e20, Y)
MASK = np.arange(N) == 2
NAN = np.where(MASK, np.nan, Y)


def quantity(values: np.ndarray):
    """As astropy and pint have them: an array that knows its unit."""

    class Quantity(np.ndarray):
        pass

    return values.view(Quantity)


WITH_NAT = [pd.NaT if hidden else value for value, hidden in zip(Y, MASK, strict=True)]

GAPS = {
    "masked": np.ma.array(HIDDEN, mask=MASK),
    "list of masked": [np.ma.array(value, mask=hidden) for value, hidden in zip(HIDDEN, MASK, strict=True)],
    "None": [None if hidden else float(value) for value, hidden in zip(Y, MASK, strict=True)],
    "objects": np.array([pd.NA if hidden else value for value, hidden in zip(Y, MASK, strict=True)], dtype=object),
    "NaT among numbers": pd.Series(WITH_NAT, dtype=object),
    "extension array": pd.array(NAN, dtype="Float64"),
    "extension series": pd.Series(pd.array(NAN, dtype="Float64")),
    "polars": pl.Series([None if hidden else value for value, hidden in zip(Y, MASK, strict=True)]),
    "text": ["nan" if hidden else repr(float(value)) for value, hidden in zip(Y, MASK, strict=True)],
}  # fmt: skip


@pytest.mark.parametrize("y", GAPS.values(), ids=GAPS.keys())
def test_what_is_missing_is_never_a_number(y):
    with pytest.raises(InputError, match="1 of 6 rows have no target"):
        read_numbers(y)
    both = read_numbers(np.ma.stack([y, np.ma.array(Y)], axis=1)) if isinstance(y, np.ma.MaskedArray) else None
    if both is not None:
        assert_array_equal(both, np.stack([NAN, Y], axis=1))


@pytest.mark.parametrize("name", ["masked", "list of masked", "extension array", "extension series", "polars"])
def test_datasets_read_the_same(name):
    data = dgpax.dataset(np.delete(X, 2, axis=0), np.delete(Y, 2))
    with pytest.warns(dgpax.errors.DgpaxWarning, match="Dropped 1 of 6 rows"):
        dropped = dgpax.dataset(X, GAPS[name], missing="drop")
    assert_array_equal(dropped.y, data.y)
    with pytest.raises(InputError, match="y has NaN in 1 of 6 rows"):
        dgpax.dataset(X, GAPS[name])


def test_masked_entries_of_a_table_are_gaps():
    numbers = np.ma.array(HIDDEN[:, None], mask=MASK[:, None])
    assert_array_equal(Encoding.of(numbers).apply(numbers)[2], [np.median(np.delete(Y, 2)), 1.0])
    texts = np.ma.array([["a"], ["b"], ["hidden"]] * 2, dtype=object, mask=[[False], [False], [True]] * 2)
    assert Encoding.of(texts).output_names == ("x0=a", "x0=b", "x0=missing")


TIMES = {
    "dates": np.array(["2020-01-01", "NaT"] * 3, dtype="datetime64[D]"),
    "durations": np.ones(N, dtype="timedelta64[h]"),
    "pandas": pd.Series(pd.date_range("2020", periods=N)),
    "polars": pl.Series(pd.date_range("2020", periods=N)),
    "objects": np.array([np.datetime64("NaT")] * N, dtype=object),
    "masked": np.ma.array(["2020-01-01"] * N, dtype="datetime64[D]", mask=MASK),
}


@pytest.mark.parametrize("y", TIMES.values(), ids=TIMES.keys())
def test_times_are_no_targets(y):
    for read in (read_numbers, lambda y: DeepGPRegressor().fit(X, y)):
        with pytest.raises(InputTypeError, match=r"(?i)times|durations"):
            read(y)
    with pytest.raises((InputError, InputTypeError), match=r"y h"):
        dgpax.dataset(X, y)
    if y is not TIMES["objects"]:
        with pytest.raises((InputError, InputTypeError)):
            dgpax.dataset(X, Y, weights=y)


def test_units_arent_dropped_without_a_word():
    for call in (
        lambda: dgpax.dataset(X, quantity(Y)),
        lambda: dgpax.dataset(quantity(X), Y),
        lambda: DeepGPRegressor().fit(X, quantity(Y)),
        lambda: DeepGPRegressor().fit(quantity(X), Y),
        lambda: DeepGPRegressor().fit(X, Y, quantity(np.ones(N))),
    ):
        with pytest.raises(InputTypeError, match=r"has units.*\.magnitude"):
            call()


LABELS = {
    "masked": np.ma.array([0, 1, 99] * 2, mask=[False, False, True] * 2),
    "masked text": np.ma.array(["a", "b", "hidden"] * 2, mask=[False, False, True] * 2),
    "None": ["a", "b", None] * 2,
    "None in an array": np.array(["a", "b", None] * 2, dtype=object),
    "NaN": [0.0, 1.0, np.nan] * 2,
    "NA": pd.Series([True, False, None] * 2, dtype="boolean"),
    "categories": pd.Series(["a", "b", None] * 2, dtype="category"),
    "polars": pl.Series(["a", "b", None] * 2),
}


@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS.keys())
def test_labels_that_are_missing_are_counted(y):
    with pytest.raises(InputError, match="2 of 6 labels are missing"):
        DeepGPClassifier().fit(X, y)


def test_labels_that_are_there_stay_what_they_are():
    unmasked = np.ma.array([3, 5, 3] * 2, mask=[False] * 6)
    assert read_labels(unmasked, N).dtype == int
    assert_array_equal(read_labels(["", "b"] * 3, N), ["", "b"] * 3)
    with pytest.raises(InputTypeError, match="Times can't be labels"):
        read_labels(TIMES["dates"], N)


def test_weights_that_are_masked_are_refused():
    weights = np.ma.array(np.ones(N), mask=MASK)
    with pytest.raises(InputError, match="Weights must be finite"):
        dgpax.dataset(X, Y, weights=weights)
    with pytest.raises(InputError, match="Sample weights must be finite"):
        DeepGPRegressor().fit(X, Y, weights)


SETTINGS = {
    "num_layers must be at least 1 and whole; got 0": {"num_layers": 0},
    "num_inducing must be at least 1 and whole; got True": {"num_inducing": True},
    "max_time is a time in seconds.*got nan": {"max_time": float("nan")},
    "max_time is a time in seconds.*got -1": {"max_time": -1},
    "whole number from .*got 18446744073709551616": {"random_state": 2**64},
    "at least 0 and whole; got -1": {"random_state": -1},
}


@pytest.mark.parametrize("message", SETTINGS)
def test_settings_that_cant_be_are_refused_at_once(message):
    with pytest.raises(InputError, match=message):
        DeepGPRegressor(**SETTINGS[message]).fit(X, Y)


def test_fractions_are_no_counts_and_no_seeds():
    """Tests check all types themselves, so that these don't get as far as a recipe or an engine here."""
    for wrong in (2.5, 2.0, "5", None, np.float64(3)):
        with pytest.raises(InputError, match="max_steps must be at least 1 and whole"):
            check_count("max_steps", wrong, 1)
        with pytest.raises(InputError, match="A seed is a whole number"):
            as_seed(wrong)
    check_count("max_steps", np.int32(3), 1)


OUTSIDE = """
import numpy as np, dgpax, sys
x = np.linspace(0.0, 1.0, 6)[:, None]
for settings in ({"num_layers": 2.5}, {"max_steps": 2.5}, {"random_state": "three"}):
    try:
        dgpax.DeepGPRegressor(**settings).fit(x, x[:, 0])
    except ValueError as error:
        print(type(error).__name__, error)
try:
    dgpax.inference.Gradient(max_steps=2.5)
except ValueError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.slow
def test_without_the_checks_of_tests_the_words_are_clear_too():
    done = subprocess.run([sys.executable, "-c", OUTSIDE], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0] == "InputError num_layers must be at least 1 and whole; got 2.5."
    assert lines[1] == "InputError max_steps must be at least 1 and whole; got 2.5."
    assert lines[3] == "InputError Gradient(max_steps=...) must be at least 0 and whole; got 2.5."


def test_engines_and_fit_refuse_them_too():
    data = dgpax.dataset(X, Y)
    for wrong in (-1, True):
        with pytest.raises(InputError, match=r"Gradient\(max_steps=...\) must be at least 0 and whole"):
            dgpax.inference.Gradient(max_steps=wrong)
    with pytest.raises(InputError, match="steps_per_call"):
        dgpax.inference.LBFGS(steps_per_call=0)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"seed": 2**64}, "A seed is a whole number"),
        ({"max_seconds": float("nan")}, "is a time in seconds"),
    ]
    for settings, message in cases:
        with pytest.raises(InputError, match=message):
            dgpax.fit(dgpax.gp_regression(data), data, **settings)
        with pytest.raises(InputError, match=message):
            many: dict[str, Any] = {"seeds": [settings["seed"]]} if "seed" in settings else settings
            dgpax.fit_many([dgpax.gp_regression(data)], [data], "exact", **many)


def test_a_seed_of_numpys_is_the_same_number():
    recipes = [DeepGPRegressor(random_state=seed)._recipe() for seed in (3, np.int64(3), np.uint8(3))]
    assert recipes[0] == recipes[1] == recipes[2] and type(recipes[1].seed) is int


@pytest.mark.parametrize("weight", [1e12, 1e300])
def test_weights_that_would_be_terabytes_of_rows(weight):
    with pytest.raises(InputError, match=r'repeats rows by their weights.*Use inference="variational"'):
        DeepGPRegressor(inference="exact").fit(X, Y, np.full(N, weight))


def test_rows_whose_covariance_would_be_terabytes():
    x = np.arange(1_000_000.0)[:, None]
    data = dgpax.dataset(x, x[:, 0])
    with pytest.raises(
        InputError, match=r'1,000,000 rows needs about 21.8 TiB, and there are .*Use inference="sparse"'
    ):
        dgpax.fit(dgpax.gp_regression(dgpax.dataset(X, Y)), data)
