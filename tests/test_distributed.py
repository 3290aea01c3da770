"""Two processes on this machine are one: the same parameters, one all-reduce a step, and an end when one is lost."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dgpax
from dgpax import distributed
from dgpax.errors import InputError

SCRIPT = Path(__file__).with_name("joined_fits.py")
CASES = ("gradient", "natural", "settling", "lbfgs", "collapsed")
PATIENCE = 900.0


def _start(count: int, folder: Path, *cases: str) -> list[subprocess.Popen]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, str(SCRIPT), port, str(count)]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    return [
        subprocess.Popen([*command, str(number), str(folder), *cases], env=environment, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for number in range(count)
    ]  # fmt: skip


def _run(count: int, folder: Path, *cases: str) -> list[dict[str, np.ndarray]]:
    """What each of the processes has found."""
    for process in _start(count, folder, *cases):
        told, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, told[-3000:]
    return [dict(np.load(folder / f"{count}-{number}.npz")) for number in range(count)]


@pytest.mark.slow
def test_two_processes_train_what_one_does(tmp_path):
    both, (alone,) = _run(2, tmp_path, *CASES), _run(1, tmp_path, *CASES)
    for joined in both:
        for name, value in alone.items():
            if not name.endswith("collectives"):
                expected = np.asarray(value, float)
                np.testing.assert_allclose(joined[name].astype(float), expected, rtol=1e-10, atol=1e-10, err_msg=name)
        for case in CASES:  # the collapsed bound's sums have a gradient that is added up too
            most = 3 if case == "collapsed" else 1
            assert all(1 <= number <= most for number in joined[f"{case} collectives"]), case


@pytest.mark.slow
def test_a_killed_process_ends_the_others_and_the_fit_goes_on_in_any_number(tmp_path):
    whole = _run(2, tmp_path, "gradient")[0]
    (tmp_path / "checkpoint").mkdir()
    survivor, killed = _start(2, tmp_path, "gradient!")
    killed.communicate(timeout=PATIENCE)
    lost = time.perf_counter()
    told, _ = survivor.communicate(timeout=PATIENCE)
    assert time.perf_counter() - lost < 60.0
    assert killed.returncode == -9 and survivor.returncode != 0
    assert "lost another process of this fit" in told
    stored = (tmp_path / "checkpoint" / "checkpoint.dgpax").read_bytes()
    for count in (2, 1):
        (tmp_path / "checkpoint" / "checkpoint.dgpax").write_bytes(stored)
        resumed = _run(count, tmp_path, "gradient")[0]
        assert 0 < int(resumed["gradient resumed"][0]) < 50
        for name in (name for name in whole if not name.endswith(("collectives", "resumed"))):
            if count == 2:
                np.testing.assert_array_equal(resumed[name], whole[name])
            np.testing.assert_allclose(resumed[name].astype(float), whole[name].astype(float), rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_unequal_data_are_refused_everywhere(tmp_path):
    for process in _start(2, tmp_path, "natural?"):
        told, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 3
        assert "InputError: Process 1 was given another data than process 0" in told


def test_one_process_is_left_alone():
    assert distributed.mesh() is None and distributed.leads()
    tree = {"a": np.ones(2)}
    assert distributed.everywhere(tree) is tree and not distributed.any_of_all(False)
    distributed.refuse_differences({"data": "0" * 64})


def test_joining_too_late_says_what_to_do():
    dgpax.dataset([[0.0]], [1.0])
    with pytest.raises(InputError, match="first of all, once, in each process"):
        distributed.initialize("127.0.0.1:1", 1, 0)
