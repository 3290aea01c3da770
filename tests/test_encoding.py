"""Tables with text, categories, dates and gaps become numbers."""

from __future__ import annotations

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from dgpax.data import CategoryColumn, Encoding, NumberColumn
from dgpax.errors import DgpaxWarning, InputError, InputTypeError
from dgpax.io import REGISTRY
from dgpax.storage import read, write

COLUMNS = {"age": [30.0, None, 50.0, 70.0], "colour": ["red", "blue", None, "red"], "new": [True, False, True, True]}
ENCODED = [
    [30.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0],
    [50.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0],
    [50.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0],
    [70.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0],
]
NAMES = ("age", "age missing", "colour=blue", "colour=missing", "colour=red", "new=False", "new=True")
ROWS = [list(row) for row in zip(*COLUMNS.values(), strict=True)]
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.mark.parametrize("library", FRAMES)
def test_frames_become_numbers_with_names(library):
    frame = FRAMES[library](COLUMNS)
    encoding = Encoding.of(frame)
    assert encoding.input_names == ("age", "colour", "new")
    assert encoding.output_names == NAMES
    assert not encoding.is_trivial
    assert_array_equal(encoding.apply(frame), ENCODED)
    assert_array_equal(encoding.apply(frame[["new", "age", "colour"]]), ENCODED)


@pytest.mark.parametrize("make", [list, lambda rows: np.array(rows, dtype=object)], ids=["lists", "objects"])
def test_tables_without_names(make):
    encoding = Encoding.of(make(ROWS))
    assert encoding.input_names == ()
    assert encoding.output_names[:3] == ("x0", "x0 missing", "x1=blue")
    assert_array_equal(encoding.apply(make(ROWS)), ENCODED)


def test_numbers_stay_as_they_are(rng):
    x = rng.normal(size=(6, 3))
    encoding = Encoding.of(x)
    assert encoding.is_trivial
    for table in (x, x.tolist(), pd.DataFrame(x), pl.DataFrame(x, schema=["a", "b", "c"]), x.astype(object)):
        assert_array_equal(encoding.apply(table), x)
    assert encoding.apply(x.astype(np.float32)).dtype == np.float32
    assert encoding.apply(pd.DataFrame(x.astype(np.float32))).dtype == np.float32
    assert_array_equal(Encoding.of(x > 0).apply(x > 0), (x > 0).astype(float))


def test_numbers_that_numpy_made_text_become_numbers_again():
    table = np.array([[1.5, "a"], [2.0, "b"]])
    assert_array_equal(Encoding.of(table).apply(table), [[1.5, 1, 0], [2.0, 0, 1]])


def test_pandas_categories_and_nullable_types():
    frame = pd.DataFrame({"size": pd.Categorical([2, 10, 2, None]), "count": pd.array([1, None, 3, 5], dtype="Int64")})
    encoding = Encoding.of(frame)
    assert encoding.columns[1] == NumberColumn("count", 3.0, has_gaps=True, is_date=False)
    assert encoding.apply(frame).shape == (4, 5)
    strings = pd.DataFrame({"a": pd.array(["u", pd.NA, "v"], dtype="string")})
    assert Encoding.of(strings).columns == (CategoryColumn("a", ("missing", "u", "v")),)


def test_polars_categories():
    frame = pl.DataFrame({"a": pl.Series(["u", None, "v"], dtype=pl.Categorical)})
    assert_array_equal(Encoding.of(frame).apply(frame), [[0, 1, 0], [1, 0, 0], [0, 0, 1]])


def test_dates_become_days():
    days = [datetime.date(1970, 1, 2), datetime.date(1971, 1, 1), datetime.date(1970, 1, 4)]
    moments = [datetime.datetime(1970, 1, 2, 12), datetime.datetime(1971, 1, 1), datetime.datetime(1970, 1, 4)]
    wanted = [[1.0], [365.0], [3.0]]
    for table in (pl.DataFrame({"t": days}), pd.DataFrame({"t": days}), [[day] for day in days]):
        assert_array_equal(Encoding.of(table).apply(table), wanted)
    wanted[0][0] = 1.5
    frame = pd.DataFrame({"t": pd.Series(moments)})
    encoding = Encoding.of(frame)
    for table in (frame, pl.DataFrame({"t": moments}), pd.DataFrame({"t": pd.Series(moments).dt.tz_localize("UTC")})):
        assert_array_equal(encoding.apply(table), wanted)
    gap = pd.DataFrame({"t": pd.Series([moments[0], pd.NaT, moments[1]])})
    assert_array_equal(Encoding.of(gap).apply(gap), [[1.5, 0], [183.25, 1], [365, 0]])
    spans = pl.DataFrame({"t": [datetime.timedelta(hours=6), None]})
    assert_array_equal(Encoding.of(spans).apply(spans), [[0.25, 0], [0.25, 1]])
    with pytest.raises(InputError, match="had dates"):
        encoding.apply(pd.DataFrame({"t": [1.0]}))


def test_an_unknown_category_is_none_of_the_known():
    encoding = Encoding.of([["a"], ["b"], ["a"]])
    with pytest.warns(DgpaxWarning, match="Column 0 has categories that the training data had not: 'c', 'missing'"):
        assert_array_equal(encoding.apply([["c"], ["a"], [None]]), [[0, 0], [1, 0], [0, 0]])


def test_a_gap_where_there_was_none_is_the_median():
    encoding = Encoding.of(pd.DataFrame({"age": [1.0, 2.0, 6.0]}))
    with pytest.warns(DgpaxWarning, match="'age' has 1 missing"):
        assert_array_equal(encoding.apply(pd.DataFrame({"age": [np.nan, 5.0]})), [[2.0], [5.0]])


@pytest.mark.parametrize("labels", [[f"row {i}" for i in range(20)], [f"{i % 60}th" for i in range(200)]])
def test_too_many_categories_name_the_column(labels):
    with pytest.raises(InputError, match="'who' is text with"):
        Encoding.of(pd.DataFrame({"x": np.arange(len(labels)), "who": labels}))


def test_few_distinct_categories_are_fine():
    assert Encoding.of([["a"], ["b"]]).output_names == ("x0=a", "x0=b")


def test_marks_of_gaps():
    names = Encoding.of(FRAMES["pandas"](COLUMNS)).output_names
    gaps = Encoding.of(FRAMES["pandas"](COLUMNS)).gaps
    assert [names[place] for place in gaps] == ["age missing", "colour=missing"]
    assert Encoding.of(np.eye(3)).gaps == ()


def test_what_cannot_be_used():
    encoding = Encoding.of(pd.DataFrame(COLUMNS))
    with pytest.raises(InputError, match="missing: 'new'"):
        encoding.apply(pd.DataFrame(COLUMNS)[["age", "colour"]])
    with pytest.raises(InputError, match="had numbers"):
        encoding.apply(pd.DataFrame(COLUMNS | {"age": ["a", "b", "c", "d"]}))
    with pytest.raises(InputError, match="X has 2 features, but"):
        Encoding.of([[1.0]]).apply([[1.0, 2.0]])
    with pytest.raises(InputError, match="Column 1 has inf"):
        Encoding.of([[1.0, np.inf]])
    with pytest.raises(InputError, match="no value at all"):
        Encoding.of([[1.0, np.nan]])
    for sparse in (scipy.sparse.eye(3).tocsr(), scipy.sparse.dok_array((3, 3))):
        with pytest.raises(InputTypeError, match="sparse"):
            Encoding.of(sparse)
        with pytest.raises(InputTypeError, match="sparse"):
            Encoding.of(np.eye(3)).apply(sparse)
    with pytest.raises(InputTypeError, match="argument must be a string or a real number"):
        Encoding.of(np.array([[{"a": 1}]], dtype=object))
    with pytest.raises(InputTypeError, match="mixes dates"):
        Encoding.of([["a"], [datetime.date(2000, 1, 1)]])
    with pytest.raises(InputError, match="Complex data not supported"):
        Encoding.of(np.array([[1j]]))
    with pytest.raises(InputError, match="All rows must have the same length"):
        Encoding.of([[1.0], [2.0, 3.0]])
    with pytest.raises(InputError, match="Reshape your data"):
        Encoding.of([1.0, 2.0])
    with pytest.raises(InputError, match=r"0 sample\(s\)"):
        Encoding.of(pd.DataFrame({"a": []}))
    with pytest.raises(InputError, match=r"0 feature\(s\)"):
        Encoding.of(np.zeros((3, 0)))


def test_it_can_be_saved(tmp_path):
    encoding = Encoding.of(pd.DataFrame(COLUMNS))
    write(tmp_path / "encoding", "encoding", encoding, REGISTRY)
    assert read(tmp_path / "encoding", "encoding", REGISTRY) == encoding


def test_known_values_make_no_warning():
    frame = pd.DataFrame(COLUMNS)
    encoding = Encoding.of(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoding.apply(frame[:2])
