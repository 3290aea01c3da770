"""No file is misread in silence: each is read right, mended with a note, or refused with the line and the remedy."""

from __future__ import annotations

import datetime
import decimal
import random
import re

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from small_files import REFUSED, UNDERSTOOD

from dgpax.data import Encoding, Table, Written, read_table
from dgpax.errors import DgpaxWarning, InputError


def read(folder, content: str | bytes, **said) -> Table:
    path = folder / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(path, **said)


@pytest.mark.parametrize("case", UNDERSTOOD)
def test_a_file_is_understood_and_what_was_mended_is_noted(case, tmp_path):
    file = UNDERSTOOD[case]
    table = read(tmp_path, file.content, **file.said)
    found = {name: (column.kind, column.first()) for name, column in table.columns.items()}
    assert found == file.columns
    assert not [column.problem for column in table.columns.values() if column.problem]
    assert len(table.notes) == len(file.notes), table.notes
    for note, pattern in zip(table.notes, file.notes, strict=True):
        assert re.search(pattern, note), note
    values = table.values()
    assert all(len(values[name]) == table.num_rows for name in values)


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_is_refused_with_the_line_and_the_remedy(case, tmp_path):
    file = REFUSED[case]
    with pytest.raises(InputError, match=file.refused):
        read(tmp_path, file.content, **file.said).values()


@pytest.mark.parametrize("case", [name for name, file in UNDERSTOOD.items() if not file.said])
def test_a_file_is_read_again_as_it_was(case, tmp_path):
    """By what was learnt from it, every file has the same values, and no remark on a column is repeated."""
    file = UNDERSTOOD[case]
    first = read(tmp_path, file.content)
    again = read(tmp_path, file.content, like=first.written)
    assert {name: column.first() for name, column in again.columns.items()} == {
        name: column.first() for name, column in first.columns.items()
    }
    assert not [note for note in again.notes if " in the column" in note]


def test_the_corpus_is_large():
    assert len(UNDERSTOOD) + len(REFUSED) > 150


RUBBISH = [
    "1", "2.5", "1,5", "1.234", "-", "NA", "", "a", '"', "28.01.2020", "14:30", "€", "%", "$$5", "#", "Total", "0012",
    "e5", "1e999", "(3)", "\x00", "9" * 400, "1/2/3", "Q1 2020", "12 kg", "²", "١", "Jan-20", "00/00/0000", "13:00 pm",
    "9999-12-31T23:59:60", "2020-01-01T00:00:00+99:99", "-+5", "1'2", "..", "--5", "sep=;", "\ufeff",
]  # fmt: skip
LEARNT = "d;price;share;kind;y\n28.01.2020;1.278,5;12%;1;3\n01.02.2020;950,5;13%;1b;4\n"


@pytest.fixture
def learnt(tmp_path) -> tuple[Written, ...]:
    return read(tmp_path, LEARNT, categories=["kind"]).written


def test_what_was_learnt_decides_where_a_later_file_leaves_a_choice(learnt, tmp_path):
    later = read(tmp_path, "d,price,share,kind\n02.03.2020,1.278,12%,2\n03.04.2020,2.500,13%,1\n", like=learnt)
    assert later.columns["d"].first() == ["2020-03-02", "2020-04-03"]
    assert later.columns["price"].first() == [1278, 2500]
    assert later.columns["kind"].first() == ["2", "1"]
    assert later.notes == ()


def test_a_later_file_may_be_written_otherwise_and_says_so(learnt, tmp_path):
    later = read(tmp_path, "d,price,share\n02/28/2020,1278.5,12\n03/04/2020,950.25,13\n", like=learnt)
    assert later.columns["d"].first() == ["2020-02-28", "2020-03-04"]
    assert later.columns["price"].first() == [1278.5, 950.25]
    assert any("had '%' beside them" in note and "'share'" in note for note in later.notes)
    otherwise = [note for note in later.notes if note.startswith("Written otherwise than in the training data")]
    assert ["'d', 'price'" in note for note in otherwise] == [True]


def test_a_later_file_that_shows_its_marks_is_believed(learnt, tmp_path):
    later = read(tmp_path, "price,size\n1.278,0.5\n9.950,1.5\n", like=learnt)
    assert later.columns["price"].first() == [1.278, 9.95]
    assert len(later.notes) == 1 and "dot is taken to be the decimal mark in the column 'price'" in later.notes[0]


def test_what_the_user_said_is_learnt(tmp_path):
    first = "d,a\n28.01.2020,5\n27.02.2020,6\n"
    learnt = read(tmp_path, first, decimal=",", dates="day-first").written
    later = read(tmp_path, "d,a\n01.02.2020,1.278\n03.04.2020,9.950\n", like=learnt)
    assert later.columns["a"].first() == [1278, 9950] and later.columns["d"].first() == ["2020-02-01", "2020-04-03"]
    assert later.notes == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("price\nabout 5\n", "'price' had numbers in the training data, and has 'about 5' in line 2"),
        ("d\nsoon\n", "'d' had dates in the training data, and has 'soon' in line 2"),
        ("y\n12%\n", "'y' had bare numbers in the training data, and has '12%' in line 2"),
        ("share\n12 kg\n", "'share' had numbers in '%' in the training data, and has '12 kg' in line 2"),
    ],
)
def test_a_later_file_with_something_else_is_refused(content, message, learnt, tmp_path):
    with pytest.raises(InputError, match=message):
        read(tmp_path, content, like=learnt).values()


def test_marks_of_gaps_are_learnt(tmp_path):
    learnt = read(tmp_path, "a,rh\n-999,+\n3,-\n4,x\n", gaps=["-999", "x"]).written
    later = read(tmp_path, "a,rh\n5,-\n-999,-\n", like=learnt)
    assert later.columns["a"].first() == [5, None] and later.columns["rh"].first() == ["-", "-"]


def test_a_column_of_a_later_file_may_be_empty(learnt, tmp_path):
    later = read(tmp_path, "d;price;kind\n;;1\n;;1b\n", like=learnt)
    assert np.isnan(later.values()["price"]).all() and later.notes == ()
    encoding = Encoding.of(read(tmp_path, LEARNT).values(["d", "price"]))
    with pytest.warns(DgpaxWarning, match="2 missing values"):
        assert np.isfinite(encoding.apply(later.values())).all()


def test_a_problem_of_a_column_that_nobody_needs_is_none(tmp_path):
    table = read(tmp_path, "a,b\n1,2\n2,x\n3,4\n")
    assert_array_equal(table.values(["a"])["a"], [1, 2, 3])
    assert table.columns["b"].first() == ["2", "x", "4"]


def test_rows_keep_their_lines(tmp_path):
    table = read(tmp_path, 'title\n\na,b\n1,"x\ny"\n2,z\n')
    assert list(table.lines) == [4, 6]
    rest = table.rows(np.array([False, True]))
    assert list(rest.lines) == [6] and rest.columns["b"].first() == ["z"] and list(rest.columns["a"].cells) == ["2"]


def test_separators_and_encodings_are_told(tmp_path):
    assert [read(tmp_path, f"a{sign}b\n1{sign}2\n").separator for sign in ",;\t|"] == [",", ";", "\t", "|"]
    encodings = ["utf-8", "utf-8-sig", "utf-16", "cp1252"]
    assert [read(tmp_path, "ä,b\n1,2\n".encode(name)).encoding for name in encodings] == encodings


def test_text_in_parquet_is_read_as_text_in_csv_is(tmp_path):
    frame = pl.DataFrame(
        {"a": ["1,5", None], "d": ["28.01.2020", "-"], "t": [datetime.time(14, 30), None], "n": [1, 2]}
    )
    frame.write_parquet(tmp_path / "t.csv")
    table = read_table(tmp_path / "t.csv")
    found = {name: (column.kind, column.first()) for name, column in table.columns.items()}
    assert found == {
        "a": ("number", [1.5, None]), "d": ("date", ["2020-01-28", None]), "t": ("time", ["14:30", None]),
        "n": ("number", [1, 2]),
    }  # fmt: skip
    assert len(table.notes) == 2 and table.separator is None and table.encoding is None


def test_types_in_parquet(tmp_path):
    columns = {"d": [decimal.Decimal("1.5"), None], "s": [datetime.timedelta(minutes=90), None], "l": [[1], [2]]}
    pl.DataFrame(columns).write_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table.values(["d", "s"])["d"].tolist()[0] == 1.5 and table.columns["s"].first() == ["01:30", None]
    with pytest.raises(InputError, match="'l' holds values of type list"):
        table.values()


def test_nothing_but_an_error_of_ours_comes_of_rubbish(tmp_path):
    rng = random.Random(0)  # noqa: S311
    for _ in range(300):
        sign, width = rng.choice(",;\t|"), rng.randrange(1, 5)
        rows = [sign.join(rng.choice(RUBBISH) for _ in range(width)) for _ in range(rng.randrange(1, 9))]
        try:
            table = read(tmp_path, "\n".join(rows))
        except InputError:
            continue
        assert [(column.kind, column.missing, column.first()) for column in table.columns.values()]
        read(tmp_path, "\n".join(rows), like=table.written)
