"""What is imported when, 64-bit floats, and the cache of compiled programs, each in processes of its own."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dgpax import settings

TINY = "import jax, jax.numpy as jnp; print(jax.jit(lambda x: jnp.sin(x).sum())(jnp.arange(5.0)) + jnp.ones(3).sum())"
CACHED = f"import dgpax; dgpax.cache_compilations(); {TINY}"
STRICT = (sys.executable, "-W", "error")


def start(code: str, *interpreter: str, **environment: str) -> subprocess.Popen[str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("DGPAX", "JAX"))}
    paths = os.pathsep.join([str(Path(settings.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [*(interpreter or STRICT), "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=variables | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": paths} | environment,
    )  # fmt: skip


def said(process: subprocess.Popen[str]) -> str:
    """On stdout; there is nothing on stderr."""
    out, errors = process.communicate()
    assert process.returncode == 0 and not errors, errors
    return out.strip()


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("dgpax-*-jax-*/*-cache"))


def test_what_is_not_used_is_not_imported():
    said(start("import dgpax, sys; assert not {'jax', 'numpy', 'rich'} & set(sys.modules)"))
    heavy = "{'sklearn', 'scipy', 'matplotlib', 'pandas'}"
    names = "DeepGP, GPLayer, data, dataset, deep_gp, fit, fit_many, gp_regression, kernels, load, predict"
    said(start(f"from dgpax import {names}; import sys; assert not {heavy} & set(sys.modules)"))


@pytest.mark.parametrize("words", ["--help", "version", "fit --help", "fit --layers zero", "nonsense", "predict"])
def test_the_command_line_starts_without_jax(words):
    code = f"""
        import sys
        from dgpax.cli import main
        sys.argv = ["dgpax", *{words.split()}]
        try:
            main()
        except SystemExit:
            pass
        assert not {{"jax", "numpy", "scipy", "sklearn", "matplotlib"}} & set(sys.modules)
    """
    process = start("\n".join(line[8:] for line in code.splitlines()), sys.executable)
    _, errors = process.communicate()
    assert process.returncode == 0, errors


@pytest.mark.parametrize(
    ("code", "environment", "dtype"),
    [
        ("import dgpax, jax.numpy", {}, "float64"),
        ("import jax.numpy, dgpax", {}, "float64"),
        ("import dgpax, importlib.util; importlib.util.find_spec('jax'); import jax.numpy", {}, "float64"),
        ("import dgpax, jax.numpy", {"JAX_ENABLE_X64": "0"}, "float32"),
    ],
)
def test_jax_has_64_bit_floats_whoever_imports_it(code, environment, dtype):
    ends = "print(jax.numpy.zeros(1).dtype); import os, sys; assert dgpax.settings.FINDER not in sys.meta_path"
    assert said(start(f"{code}; {ends}", **environment)) == dtype


@pytest.mark.slow
def test_there_is_no_cache_unless_asked_for(tmp_path):
    home = {"XDG_CACHE_HOME": str(tmp_path)}
    said(start(f"import dgpax; {TINY}", **home))
    said(start(CACHED, **home, DGPAX_CACHE="off"))
    assert not list(tmp_path.iterdir())
    said(start(f"import dgpax; {TINY}", **home, DGPAX_CACHE=str(tmp_path / "chosen")))
    assert entries(tmp_path / "chosen")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the cache folder is another")
def test_two_processes_that_begin_at_once_and_a_third(tmp_path):
    home = {"XDG_CACHE_HOME": str(tmp_path)}
    first, second = start(CACHED, **home), start(CACHED, **home)
    assert said(first) == said(second)
    kept = {path: path.stat().st_mtime_ns for path in entries(tmp_path / "dgpax" / "compiled")}
    hits = "import jax; n = []; jax.monitoring.register_event_listener(lambda e, **_: n.append(e)); "
    hits += f"{CACHED}; assert '/jax/compilation_cache/cache_hits' in n; assert not [e for e in n if 'misses' in e]"
    said(start(hits, **home))
    assert kept == {path: path.stat().st_mtime_ns for path in entries(tmp_path / "dgpax" / "compiled")}


def test_truncated_and_foreign_entries_are_compiled_anew(tmp_path):
    right = said(start(CACHED, DGPAX_CACHE=str(tmp_path)))
    made = entries(tmp_path)
    spoilt = (lambda whole: whole[: len(whole) // 2], lambda whole: b"", lambda whole: b"something else")
    for path, spoil in zip(made, itertools.cycle(spoilt), strict=False):
        path.write_bytes(spoil(path.read_bytes()))
    assert len(made) >= len(spoilt) and said(start(CACHED, DGPAX_CACHE=str(tmp_path))) == right


@pytest.mark.slow
def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    blocked = str(tmp_path / "file" / "inside")
    right = said(start(TINY, JAX_ENABLE_X64="1"))
    assert said(start(CACHED, XDG_CACHE_HOME=blocked)) == right
    process = start(CACHED, sys.executable, DGPAX_CACHE=blocked)
    out, errors = process.communicate()
    assert out.strip() == right and "Programs can't be kept in" in errors and "Traceback" not in errors


@pytest.mark.slow
def test_the_command_line_keeps_what_it_compiles(tmp_path):
    code = "import sys; from dgpax.cli import main; sys.argv = ['dgpax', {}'datasets']; main()"
    then = "import jax; print(jax.config.jax_compilation_cache_dir)"
    home, off = {"XDG_CACHE_HOME": str(tmp_path)}, {"DGPAX_CACHE": "off"}
    for words, variables, there in (("", {}, True), ("'--no-cache', ", {}, False), ("", off, False)):
        ran = start(f"try:\n  {code.format(words)}\nexcept SystemExit: {then}", **home, **variables)
        assert (said(ran).splitlines()[-1] != "None") == there


def test_what_was_not_used_for_longest_goes_first(tmp_path):
    now = time.time()
    for age, version in enumerate(["2", "1", "1", "1"]):
        (folder := tmp_path / f"dgpax-{version}-jax-0").mkdir(exist_ok=True)
        (folder / f"{age}-cache").write_bytes(bytes(100))
        os.utime(folder / f"{age}-cache", (now - age, now - 10 * age))
    (tmp_path / "dgpax-1-jax-0" / "empty-cache").touch()
    (tmp_path / "mine-cache").write_bytes(bytes(1000))

    def left() -> list[str]:
        return sorted(path.name for path in tmp_path.rglob("*-cache"))

    settings._make_room(tmp_path, 400)
    assert left() == ["0-cache", "1-cache", "2-cache", "3-cache", "mine-cache"]
    settings._make_room(tmp_path, 399)
    assert left() == ["0-cache", "1-cache", "2-cache", "mine-cache"]
    settings._make_room(tmp_path, 200)
    assert left() == ["0-cache", "mine-cache"]
