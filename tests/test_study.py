"""Ask and tell: what is told is kept, and what is asked for stays the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dgpax.design import OneOf, Study, Whole
from dgpax.errors import DgpaxWarning, InputError, ModelFileError

BOX = {"speed": (0.0, 3.0), "count": Whole(1, 4)}


def simulated(rows):
    return [float(np.sin(row["speed"]) + 0.1 * row["count"]) for row in rows]


def begun(path=None, **words):
    return Study(BOX, path=path, inference="exact", num_initial=5, **words)


def test_the_first_runs_are_a_latin_hypercube_and_wait_until_they_are_told():
    study = begun()
    rows = study.ask(3)
    assert study.ask(3) == rows == study.ask(4)[:3]
    assert "5 runs" in study.advice
    study.tell(rows[1:2], simulated(rows[1:2]))
    assert study.ask(3) == [rows[0], rows[2], study.ask(4)[2]]
    study.tell(study.ask(4), simulated(study.ask(4)))
    assert study.num_runs == 5 and study.x.shape == (5, 2)
    assert len({row["count"] for row in study.space.words(study.x)}) >= 3


def test_a_study_goes_on_from_its_file(tmp_path):
    path = tmp_path / "study.dgpax"
    study = begun(path)
    rows = study.ask(3)
    assert Study.load(path).ask(3) == rows == begun(path).ask(3)
    Study.load(path).tell(rows, [{"drag": 1.0}, {"drag": None}, {"drag": 2.0}])
    told = begun(path)
    assert told.outputs == ("drag",) and told.num_runs == 3 and np.isnan(told.y[1, 0])
    with pytest.raises(InputError, match="other bounds"):
        Study({"speed": (0.0, 3.0)}, path=path)
    content = path.read_bytes()
    path.write_bytes(content[:-20] + bytes(20))
    with pytest.raises(ModelFileError):
        Study.load(path)


@pytest.mark.slow
@pytest.mark.parametrize("words", [{"inference": "exact"}, {"inference": "variational", "max_steps": 30}])
def test_suggestions_of_a_fit_are_the_same_after_a_kill(tmp_path, words):
    path = tmp_path / "study.dgpax"
    alone, kept = (Study(BOX, path=where, num_initial=5, **words) for where in (None, path))
    for _ in range(2):
        rows = alone.ask(5)
        assert Study.load(path).ask(5) == rows
        for study in (alone, Study.load(path)):
            study.tell(rows, simulated(rows))
    assert Study.load(path).ask(2) == alone.ask(2) == Study.load(path).ask(2)
    assert "spread" in alone.advice and len(alone.worth) == 2
    assert kept.num_runs == 0


def test_a_study_of_failures_goes_on_with_a_warning():
    study = begun()
    rows = study.ask(5)
    study.tell(rows, [float("nan")] * 5)
    with pytest.warns(DgpaxWarning, match="All 5 runs failed"):
        more = study.ask(2)
    assert len(more) == 2 and not any(row in rows for row in more)
    with pytest.raises(InputError, match="at least 2 runs with values"):
        study.fitted()


@pytest.mark.parametrize(
    "rows, values, message",
    [
        ([[4.0, 2]], [1.0], "outside of the bounds"),
        ([[1.0, 2]], [1.0, 2.0], "a value for every row"),
        ([[1.0, 2]], [np.inf], "infinite"),
        ([[1.0, 2]], ["high"], "numbers"),
        ([[1.0, 2.5]], [1.0], "whole numbers"),
        ([{"speed": 1.0}], [1.0], "no count"),
        ([[float("nan"), 2]], [1.0], "must be finite"),
        ([[1.0, 2]], [[1.0, 2.0]], "these have 2"),
    ],
)
def test_what_cannot_be_told(rows, values, message):
    study = begun()
    study.tell([[0.5, 1]], [0.0])
    with pytest.raises(InputError, match=message):
        study.tell(rows, values)
    assert study.num_runs == 1


def test_a_small_box_runs_out():
    study = Study({"count": Whole(1, 3), "colour": OneOf(("red", "blue"))}, num_initial=2, inference="exact")
    rows = study.ask(6)
    assert len({tuple(row.values()) for row in rows}) == 6
    with pytest.raises(InputError, match="left"):
        study.ask(7)


SCRIPT = """
import sys, numpy as np, dgpax
study = dgpax.design.Study({"speed": (0.0, 3.0)}, path=sys.argv[1], inference="exact", num_initial=100, max_steps=5)
print("ready", flush=True)
while study.num_runs < 300:
    rows = study.ask(2)
    study.tell(rows, [float(np.sin(row["speed"])) for row in rows])
    print(study.num_runs, flush=True)
"""


@pytest.mark.slow
def test_nothing_told_is_lost_by_a_kill(tmp_path):
    """At ten moments, most of them while something is written."""
    path, rng = tmp_path / "study.dgpax", np.random.default_rng(0)
    for _ in range(10):
        with subprocess.Popen([sys.executable, "-c", SCRIPT, str(path)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            time.sleep(float(rng.uniform(0.0, 1.0)))
            os.kill(process.pid, signal.SIGKILL)
            said = [int(line) for line in process.stdout.read().split()]
        study = Study.load(path)
        assert study.num_runs >= max(said, default=0)
        copy = tmp_path / "copy.dgpax"
        copy.write_bytes(path.read_bytes())
        assert Study.load(copy).ask(2) == study.ask(2)
        np.testing.assert_allclose(study.y.ravel(), np.sin(study.x.ravel()))
