"""`dgpax look`, and how the other commands read files: what is understood, asked and refused."""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
import pytest
from small_files import REFUSED, UNDERSTOOD
from typer.testing import CliRunner

from dgpax.cli import app, main
from dgpax.cli._csv import csv_text
from dgpax.cli._source import Choice, read_source
from dgpax.data import read_table
from dgpax.data.reading import Wishes
from dgpax.errors import DgpaxWarning, InputError

RUNNER = CliRunner()
RENTS = "built;area;rent;new;none\n28.01.1990;85,5;950;yes;\n01.02.2004;90;1.278;-;\n03.03.1999;-;1.100;no;\n"


def written(folder, text: str) -> str:
    (folder / "t.csv").write_text(text)
    return str(folder / "t.csv")


def looked(path: str, *words: str) -> dict:
    result = RUNNER.invoke(app, ["look", path, "--json", *words], catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.output)


def test_look_tells_what_was_understood(tmp_path):
    found = looked(written(tmp_path, RENTS), "--target", "rent")
    assert {key: found[key] for key in ("rows", "separator", "encoding")} == {
        "rows": 3, "separator": ";", "encoding": "utf-8",
    }  # fmt: skip
    assert found["columns"] == [
        {"name": "built", "kind": "date", "missing": 0, "first": ["1990-01-28", "2004-02-01", "1999-03-03"]},
        {"name": "area", "kind": "number", "missing": 1, "first": [85.5, 90, None]},
        {"name": "rent", "kind": "number", "missing": 0, "first": [950, 1278, 1100]},
        {"name": "new", "kind": "category", "missing": 1, "first": ["yes", None, "no"]},
        {"name": "none", "kind": "empty", "missing": 3, "first": [None, None, None]},
    ]
    assert [note.split(" in the ")[0] for note in found["notes"]] == [
        "'-' is taken as a gap", "Decimal commas or dots for thousands",
        "The dot is taken to be a mark of thousands", "No value at all",
    ]  # fmt: skip


def test_look_for_people(tmp_path):
    path = written(tmp_path, RENTS)
    shown = RUNNER.invoke(app, ["look", path], catch_exceptions=False).output
    assert "t.csv: 3 rows, 5 columns, separated by semicolons, in utf-8" in shown
    assert "85.5, 90, ·" in shown and "note: The dot is taken to be a mark of thousands" in shown


def test_look_shows_all_and_fails_where_a_column_cannot_be_used(tmp_path, monkeypatch, capsys):
    path = written(tmp_path, "a,b\n1,2\nabout 5,3\n7,4\n")
    monkeypatch.setattr(sys, "argv", ["dgpax", "look", path, "--json"])
    monkeypatch.setattr("warnings.showwarning", None)
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert ended.value.code == 1 and "'about 5' in line 3" in printed.err
    assert found["columns"][0]["kind"] == "number" and found["problems"][0] in printed.err.replace("\n", " ")
    assert looked(path, "--gap", "about 5")["columns"][0]["first"] == [1, None, 7]
    assert looked(path, "--category", "a")["columns"][0]["first"] == ["1", "about 5", "7"]


@pytest.mark.parametrize("case", [name for name, file in UNDERSTOOD.items() if not file.said])
def test_look_has_an_answer_for_every_file(case, tmp_path):
    (tmp_path / "t.csv").write_bytes(UNDERSTOOD[case].content)
    found = looked(str(tmp_path / "t.csv"))
    assert {one["name"]: (one["kind"], one["first"]) for one in found["columns"]} == UNDERSTOOD[case].columns


@pytest.mark.parametrize("case", [name for name, file in REFUSED.items() if not file.said])
def test_look_refuses(case, tmp_path):
    (tmp_path / "t.csv").write_bytes(REFUSED[case].content)
    result = RUNNER.invoke(app, ["look", str(tmp_path / "t.csv")])
    assert isinstance(result.exception, InputError) and result.exit_code == 1


CLASSES = ["012", "01", "1234"]


@pytest.mark.parametrize("values", CLASSES)
def test_whole_numbers_of_few_values_ask_for_the_task(values, tmp_path):
    rows = "".join(f"{i * i},{values[i % len(values)]}\n" for i in range(20))
    path = written(tmp_path, f"x,kind\n{rows}")
    message = f"'kind' holds whole numbers with {len(values)} different values.*--task classification"
    with pytest.warns(DgpaxWarning, match=message):
        assert read_source(path, Choice()).classes == ()
    assert any("--task classification" in note for note in looked(path)["notes"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_source(path, Choice(task="regression")).classes == ()
        assert read_source(path, Choice(task="classification")).classes == tuple(values)


def test_targets_that_cannot_be_predicted(tmp_path):
    path = written(tmp_path, "x,d,e\n" + "".join(f"{i * i},2020-01-{i + 10},\n" for i in range(9)))
    with (
        pytest.warns(DgpaxWarning, match="No value"),
        pytest.raises(InputError, match=r"target 'd' holds dates.*--target"),
    ):
        read_source(path, Choice())
    with pytest.warns(DgpaxWarning), pytest.raises(InputError, match="target 'e' holds no value at all"):
        read_source(path, Choice(target="e"))


def test_what_fit_reads_is_what_look_shows(tmp_path):
    rows = "".join(f"{i % 28 + 1:02d}.03.2020;{i},5;{i}.{100 + i};{14 + i % 5}:30;\n" for i in range(1, 21))
    path = written(tmp_path, f"when;size;price;at;gone\n{rows}")
    with pytest.warns(DgpaxWarning) as notes:
        source = read_source(path, Choice(target="price"))
    assert source.encoding.output_names == ("when", "size", "at")
    np.testing.assert_array_equal(np.sort(np.concatenate([source.train.y, source.test.y])[:, 0])[:2], [1101, 2102])
    assert {one.name: one.kind for one in source.written} == {
        "when": "date", "size": "number", "at": "time", "price": "number",
    }  # fmt: skip
    assert [one.kind for one in source.columns or ()] == ["date", "number", "time"]
    assert any("'gone', which is left out" in str(note.message) for note in notes)
    with pytest.warns(DgpaxWarning):
        told = read_source(path, Choice(target="price", wishes=Wishes(gaps=("1,5",))))
    assert "size missing" in told.encoding.output_names


def test_a_column_in_the_way_can_be_ignored(tmp_path):
    path = written(tmp_path, "x,b,y\n" + "".join(f"{i * i},{'x' if i == 3 else i},{i}.5\n" for i in range(9)))
    with pytest.raises(InputError, match="'b' holds numbers in 8 of 9 rows, and 'x' in line 5"):
        read_source(path, Choice())
    assert read_source(path, Choice(ignore=["b"])).encoding.output_names == ("x",)


def test_a_column_without_values_to_train_on_is_left_out(tmp_path):
    path = written(tmp_path, "x,b,y\n" + "".join(f"{i * i},{'7' if i == 0 else ''},{i}.5\n" for i in range(9)))
    kept = []
    for seed in range(20):
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            kept.append(read_source(path, Choice(seed=seed)).encoding.input_names)
        assert (kept[-1] == ("x",)) == any("among the rows to train on" in str(note.message) for note in notes)
    assert set(kept) == {("x",), ("x", "b")}


@pytest.mark.parametrize("share", ["nan", "1", "-0.5"])
def test_test_fractions_that_are_none(share, tmp_path):
    result = RUNNER.invoke(app, ["fit", written(tmp_path, "x,y\n1,2\n"), "--test-fraction", share])
    assert isinstance(result.exception, InputError) and "at least 0 and below 1" in str(result.exception)


@pytest.mark.parametrize("command", [["fit", "energy"], ["compare", "energy"], ["predict", "m", "t.csv"]])
def test_a_negative_seed_is_a_wrong_option(command):
    result = RUNNER.invoke(app, [*command, "--seed", "-1"])
    assert result.exit_code == 2 and "--seed" in result.output


def test_spreadsheets_run_nothing_of_what_is_written(tmp_path):
    labels = ["=cmd|' /C calc'!A0", "+1+cmd", "-2", "-red", "@SUM(A1)", "\tx", "plain", "-1,5 %"]
    text = csv_text({"=kind": labels, "p": [-1.0] * len(labels)})
    (tmp_path / "t.csv").write_text(text)
    assert text.splitlines()[0] == "'=kind,p"
    assert [line.strip('"')[0] for line in text.splitlines()[1:]] == ["'", "'", "-", "'", "'", "'", "p", "-"]
    assert read_table(tmp_path / "t.csv").columns["p"].first() == [-1] * 5
