"""`dgpax suggest`, `dgpax tell` and `dgpax sensitivity`: a study by files."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from dgpax.cli import app
from dgpax.design import Study
from dgpax.errors import InputError

RUNNER = CliRunner()
BOUNDS = ["--bound", "speed=0:3", "--bound", "count=1:9:whole", "--bound", "colour=red|blue"]


def called(*words: str) -> str:
    result = RUNNER.invoke(app, list(map(str, words)), catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_runs_by_files(tmp_path):
    study, asked, results = (tmp_path / name for name in ("s.dgpax", "next.csv", "results.csv"))
    assert "3 runs written" in called("suggest", study, "-n", "3", *BOUNDS, "--output", asked)
    rows = list(csv.DictReader(asked.read_text().splitlines()))
    assert list(rows[0]) == ["speed", "count", "colour"] and {row["colour"] for row in rows} <= {"red", "blue"}
    said = json.loads(called("suggest", study, "-n", "3", "--json"))
    assert [str(run["count"]) for run in said["runs"]] == [row["count"] for row in rows]
    drag = [f"{float(row['speed']) ** 2}" for row in rows[:2]] + [""]
    lines = [",".join([*row.values(), value]) for row, value in zip(rows, drag, strict=True)]
    results.write_text("\n".join(["speed,count,colour,drag", *lines]))
    assert "3 runs told, 1 of them failed; 3 in all." in called("tell", study, results)
    kept = Study.load(study)
    assert kept.outputs == ("drag",) and np.isnan(kept.y[:, 0]).tolist() == [False, False, True]
    np.testing.assert_allclose(kept.y[:2, 0], kept.x[:2, 0] ** 2)


@pytest.mark.parametrize(
    "words, message",
    [
        (["suggest", "none.dgpax"], "There is no study"),
        (["suggest", "none.dgpax", "--bound", "speed=3"], "isn't understood"),
        (["suggest", "none.dgpax", "--bound", "speed=3:1"], "upside down"),
    ],
)
def test_words_that_are_wrong(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        called(*words)


def test_columns_that_are_wrong(tmp_path):
    study, results = tmp_path / "s.dgpax", tmp_path / "r.csv"
    called("suggest", study, *BOUNDS)
    with pytest.raises(InputError, match="bounds and a criterion already"):
        called("suggest", study, *BOUNDS)
    for text, message in (
        ("speed,drag\n1,2\n2,3\n", "no column"),
        ("speed,count,colour\n1,2,red\n", "no column with"),
    ):
        results.write_text(text)
        with pytest.raises(InputError, match=message):
            called("tell", study, results)


@pytest.mark.slow
def test_a_report_and_what_matters(tmp_path):
    path, page = tmp_path / "s.dgpax", tmp_path / "s.html"
    study = Study({"speed": (0.0, 3.0), "colour": (0.0, 1.0)}, path=path, inference="exact")
    rows = study.ask(6)
    study.tell(rows, [float(np.sin(row["speed"])) for row in rows])
    called("suggest", path, "--report", page)
    text = page.read_text()
    assert "Which inputs matter" in text and "<script" not in text and "speed" in text
    said = json.loads(called("sensitivity", path, "--json"))
    assert said["speed"]["total"] > 0.8 > said["colour"]["total"]
    assert "speed" in called("sensitivity", path)
