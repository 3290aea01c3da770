"""Tables in files on the command line: what is read, what is written, and what is refused."""

from __future__ import annotations

import datetime
import gzip
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from test_cli import houses

from dgpax.cli._csv import csv_text
from dgpax.cli._source import Choice, read_source
from dgpax.data import read_table
from dgpax.data.reading import is_table
from dgpax.errors import DgpaxWarning, InputError, MissingDataError


def table_of(folder, content: str | bytes, name: str = "t.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(path).values()


def test_kinds_of_columns(tmp_path):
    columns = table_of(tmp_path, "n,t,d,e\n1,a,2020-01-02,\n ,NA,2021-03-04T05:06:07, \n1e3,b c,,?\n")
    assert_array_equal(columns["n"], [1.0, np.nan, 1000.0])
    assert columns["t"].tolist() == ["a", None, "b c"]
    assert columns["d"].tolist() == [datetime.datetime(2020, 1, 2), datetime.datetime(2021, 3, 4, 5, 6, 7), None]
    assert np.isnan(columns["e"]).all()


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_quotes_and_blank_lines(tmp_path, separator):
    columns = table_of(tmp_path, f'a{separator}"b {separator} b"\r\n\r\n1{separator}"x\ny"\r\n2{separator}z\r\n')
    assert_array_equal(columns["a"], [1.0, 2.0])
    assert columns[f"b {separator} b"].tolist() == ["x\ny", "z"]


def test_encodings_and_compression(tmp_path):
    assert list(table_of(tmp_path, "\ufeffgrün\n1\n2\n")) == ["grün"]
    assert list(table_of(tmp_path, "grün\n1\n2\n".encode("latin-1"))) == ["grün"]
    assert_array_equal(table_of(tmp_path, gzip.compress(b"a\n1\n2\n"), "t.csv.gz")["a"], [1.0, 2.0])


def test_times_with_a_zone_become_utc(tmp_path):
    columns = table_of(tmp_path, "t,x\n2020-01-01T02:00:00+02:00,1\n")
    assert columns["t"].tolist() == [datetime.datetime(2020, 1, 1)]


def test_tables_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="line 3 has 1 cell, and line 1 names 2 columns"):
        table_of(tmp_path, "a,b\n1,2\n3\n")
    with pytest.raises(InputError, match="same name"):
        table_of(tmp_path, "a,a\n1,2\n")
    with pytest.raises(InputError, match="no rows below"):
        table_of(tmp_path, "a,b\n")
    with pytest.raises(InputError, match="can't be read as a table"):
        table_of(tmp_path, "")
    with pytest.raises(MissingDataError, match="There is no file"):
        read_table(tmp_path / "nothing.csv")


def test_parquet(tmp_path):
    frame = pl.DataFrame({"n": [1, None], "t": ["a", None], "d": [datetime.date(2020, 1, 2), None], "b": [True, False]})
    frame.write_parquet(tmp_path / "t.parquet")
    columns = read_table(tmp_path / "t.parquet").values()
    assert_array_equal(columns["n"], [1.0, np.nan])
    assert columns["t"].tolist() == ["a", None] and columns["b"].tolist() == ["True", "False"]
    assert columns["d"].tolist() == [datetime.datetime(2020, 1, 2), None]


def test_parquet_without_a_reader(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").touch()
    for library in ("polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingDataError, match=r"pip install polars\. Or save it as CSV"):
        read_table(tmp_path / "t.parquet")


def test_names_of_files_and_of_datasets():
    assert is_table("x.CSV") and is_table("a/b.tsv.gz") and not is_table("energy")


def test_written_numbers_are_read_back(tmp_path):
    values = [0.1, 1e-300, 1.0 / 3.0]
    columns = table_of(tmp_path, csv_text({"a,b": values, "t": ["x", 'y"', "z\n"]}))
    assert columns["a,b"].tolist() == values and columns["t"].tolist() == ["x", 'y"', "z"]


def test_a_word_among_numbers_does_not_make_a_target_labels(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n1,2\n2,x\n3,5\n4,7\n5,\n6,1\n")
    with pytest.raises(InputError, match=r"'y' holds numbers in 4 of 6 rows, and 'x' in line 3.*--task classification"):
        read_source(str(path), Choice())
    with pytest.warns(DgpaxWarning):
        assert read_source(str(path), Choice(task="classification")).classes == ("1", "2", "5", "7", "x")


@pytest.mark.slow
def test_a_new_user_gets_from_a_table_to_predictions(tmp_path):
    """In processes of their own: fit with a report, predict new rows without the target, in under five minutes."""
    (tmp_path / "houses.csv").write_text(houses(120))
    (tmp_path / "new.csv").write_text("\n".join(line.rpartition(",")[0] for line in houses(10, seed=1).splitlines()))

    def dgpax(*words: str) -> str:
        command = [sys.executable, "-c", "from dgpax.cli import main; main()", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout

    assert "Report written to dgpax-output/houses.html" in dgpax("fit", "houses.csv", "--target", "price")
    page = (tmp_path / "dgpax-output" / "houses.html").read_text()
    assert ">colour<" in page and "Do stated probabilities come true?" in page
    dgpax("predict", "dgpax-output/houses.dgpax", "new.csv", "--output", "predictions.csv")
    columns = read_table(tmp_path / "predictions.csv").values()
    assert list(columns)[:2] == ["price mean", "price std"] and len(columns["price mean"]) == 10
    truth = read_table(tmp_path / "houses.csv").values()["price"]
    assert truth.min() - 200 < columns["price mean"].min() and columns["price mean"].max() < truth.max() + 200
