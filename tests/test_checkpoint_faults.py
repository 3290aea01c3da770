"""Checkpoints when things go wrong: full disks, killed writers, two fits in one folder, signals."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
import time

import pytest
from test_checkpoint import PowerCut, cut_off_at, fit, same

from dgpax.errors import DgpaxWarning, InputError, ModelFileError
from dgpax.storage import Names, read, write

FILE = "checkpoint.dgpax"


def at_step(step: int, action):
    """A callback that does something once."""
    done = []

    def callback(progress):
        if progress.step >= step and not done:
            done.append(progress.step)
            action()

    return callback


def full_disk(monkeypatch, failures: int):
    """The first writes find no space; how often it was tried comes back."""
    tried, sync = [], os.fsync

    def fsync(handle):
        if stat.S_ISREG(os.fstat(handle).st_mode):
            tried.append(handle)
            if len(tried) <= failures:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    monkeypatch.setattr("dgpax.storage._atomic.os.fsync", fsync)
    return tried


def test_a_full_disk_warns_once_and_never_ends_a_fit(tmp_path, monkeypatch):
    tried = full_disk(monkeypatch, 3)
    with pytest.warns(
        DgpaxWarning, match=r"step 4 can't be written.*No space left.*goes on from nothing yet"
    ) as warned:
        fitted = fit("minibatches", checkpoint=tmp_path, checkpoint_every=0.0)
    assert len([w for w in warned if "can't be written" in str(w.message)]) == 1 and len(tried) > 4
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert same(fitted, fit("minibatches", checkpoint=tmp_path))


def test_it_is_tried_again_later_not_at_once(tmp_path, monkeypatch):
    tried = full_disk(monkeypatch, 10**6)
    with pytest.warns(DgpaxWarning, match="in 1000 s it is tried again"), pytest.raises(PowerCut):
        fit("minibatches", checkpoint=tmp_path, checkpoint_every=1000.0, callbacks=[
            at_step(8, lambda: os.kill(os.getpid(), signal.SIGUSR1)), cut_off_at(40)
        ])  # fmt: skip
    assert len(tried) == 1 and not list(tmp_path.iterdir())


def test_a_folder_that_goes_and_comes_back_is_written_to_again(tmp_path):
    folder, away = tmp_path / "here", tmp_path / "away"

    def take_away():
        folder.rename(away)
        folder.write_text("not a folder")

    def bring_back():
        folder.unlink()
        away.rename(folder)

    with pytest.warns(DgpaxWarning, match=r"goes on from step 8"), pytest.raises(PowerCut):
        moves = [at_step(12, take_away), at_step(24, bring_back), cut_off_at(40)]
        fit("minibatches", checkpoint=folder, checkpoint_every=0.0, callbacks=moves)
    assert fit("minibatches", checkpoint=folder).report.resumed_at == (36,)


def test_a_file_in_place_of_the_folder_is_an_error_in_words(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="there is a file of that name"):
        fit("minibatches", checkpoint=tmp_path / "file")


def test_what_was_written_is_on_the_disk_and_so_is_its_name(tmp_path, monkeypatch):
    synced, sync = [], os.fsync

    def fsync(handle):
        synced.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    monkeypatch.setattr("dgpax.storage._atomic.os.fsync", fsync)
    write(tmp_path / "value", "test", (1.0,), Names({}))
    assert synced == ["file", "folder"]


def dead_process() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_leftovers_of_killed_writers_are_removed_and_nothing_else(tmp_path):
    write(tmp_path / "value", "test", 1, Names({}))
    machine = {}

    def name_of_partial(process: int) -> str:
        return f".value.{machine['name']}.{process}.0a1b2c3d.partial"

    class Full(Exception):
        pass

    def parts():
        (partial,) = tmp_path.glob(".value.*")
        machine["name"] = partial.name.split(".")[2]
        yield b""
        raise Full

    from dgpax.storage._atomic import write_whole

    with pytest.raises(Full):
        write_whole(tmp_path / "value", parts())
    assert [path.name for path in tmp_path.iterdir()] == ["value"]
    leftovers = [name_of_partial(dead_process()), ".value.elsewhere.1.aa.partial", ".value.0123456789abcdef.partial"]
    others = [
        name_of_partial(os.getppid()),
        ".value.elsewhere.2.aa.partial",
        ".other.0123456789abcdef.partial",
        "x.tmp",
    ]
    for name in leftovers + others:
        (tmp_path / name).write_bytes(b"half")
    for name in leftovers[1:]:
        os.utime(tmp_path / name, (0.0, time.time() - 1e5))
    write(tmp_path / "value", "test", 2, Names({}))
    assert {path.name for path in tmp_path.iterdir()} == {"value", *others}
    assert read(tmp_path / "value", "test", Names({})) == 2


def test_a_second_fit_in_the_same_folder_is_refused_and_the_first_one_named(tmp_path):
    refused = []

    def second():
        with pytest.raises(InputError, match=rf"Another fit writes.*process {os.getpid()} on .*, since 2"):
            fit("minibatches", checkpoint=tmp_path)
        refused.append(True)

    first = fit("minibatches", checkpoint=tmp_path, checkpoint_every=0.0, callbacks=[at_step(8, second)])
    assert refused and [path.name for path in tmp_path.iterdir()] == [FILE]
    assert same(first, fit("minibatches", checkpoint=tmp_path))


def test_the_lock_of_a_process_that_is_gone_holds_nobody_up(tmp_path):
    (tmp_path / "checkpoint.lock").write_text("process 1 on nowhere, since yesterday")
    assert fit("minibatches", checkpoint=tmp_path).report.steps == 60
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_sigusr1_writes_and_the_fit_goes_on(tmp_path):
    calls = [at_step(8, lambda: os.kill(os.getpid(), signal.SIGUSR1)), cut_off_at(40)]
    with pytest.raises(PowerCut):
        fit("minibatches", checkpoint=tmp_path, checkpoint_every=1000.0, callbacks=calls)
    assert fit("minibatches", checkpoint=tmp_path).report.resumed_at == (8,)


def test_sigterm_writes_and_ends_with_143(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    terminate = at_step(20, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(SystemExit) as ended:
        fit("minibatches", checkpoint=tmp_path, checkpoint_every=1000.0, callbacks=[terminate])
    assert ended.value.code == 143 and signal.getsignal(signal.SIGTERM) is before
    resumed = fit("minibatches", checkpoint=tmp_path)
    assert resumed.report.resumed_at == (20,) and same(resumed, fit("minibatches"))


def test_signals_are_left_alone_without_a_checkpoint_where_they_are_ignored_and_in_threads(tmp_path):
    seen = []

    def look(progress):
        seen.append((signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGUSR1)))

    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGUSR1)
    fit("minibatches", callbacks=[look])
    assert set(seen) == {before}
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        fit("minibatches", checkpoint=tmp_path / "ignored", callbacks=[look])
        assert seen[-1][0] is signal.SIG_IGN and seen[-1][1] is not before[1]
    finally:
        signal.signal(signal.SIGTERM, before[0])
    thread = threading.Thread(target=lambda: fit("minibatches", checkpoint=tmp_path / "thread", callbacks=[look]))
    thread.start()
    thread.join()
    assert seen[-1] == before and (tmp_path / "thread" / FILE).exists()


def test_a_checkpoint_with_another_record_is_refused(tmp_path):
    from dgpax.inference._checkpoint import KIND, NAMES

    fit("minibatches", checkpoint=tmp_path, max_seconds=0.0)
    saved = read(tmp_path / FILE, KIND, NAMES)
    for record in ({}, {**saved.record, "history": 3.0}, {**saved.record, "step": "4"}):
        write(tmp_path / FILE, KIND, saved._replace(record=record), NAMES)
        with pytest.raises(ModelFileError, match="record isn't one of a fit"):
            fit("minibatches", checkpoint=tmp_path)


TERMINATED = """
import sys, threading, os, signal, checkpointed_fit
def end(progress):
    if progress.step == 100:
        os.kill(os.getpid(), signal.SIGTERM)
checkpointed_fit.run(sys.argv[1], callbacks=[end])
print("never said")
"""


@pytest.mark.slow
def test_a_process_that_is_terminated_says_143_and_goes_on_when_called_again(tmp_path):
    folder = os.path.dirname(__file__)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, *sys.path])}
    command = [sys.executable, "-c", TERMINATED, str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 143 and not done.stdout
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
