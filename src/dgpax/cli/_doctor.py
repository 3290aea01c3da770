"""`dgpax doctor`: is this installation in order?"""

from __future__ import annotations

import importlib.metadata
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from ..errors import DgpaxError
from ._app import EXIT_ERROR, app, listing, print_json, say

LIBRARIES = (
    "dgpax",
    "jax",
    "jaxlib",
    "equinox",
    "optax",
    "numpy",
    "scipy",
    "scikit-learn",
    "matplotlib",
    "safetensors",
)
MOST_ERROR = {"float64": 1e-12, "float32": 1e-4}


class Check(NamedTuple):
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str


@app.command("doctor")
def doctor_command(json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False) -> None:
    """Look at the environment, the devices and the precision, and fit a tiny model. Exit code 1 if something is wrong.

    Examples: dgpax doctor · dgpax doctor --json
    """
    checks = examine()
    if json:
        print_json([check._asdict() for check in checks])
    else:
        say(listing(("", "what", "found"), [("ok" if c.ok else "WRONG", c.name, c.detail) for c in checks]))
        wrong = sum(not check.ok for check in checks)
        say(f"{wrong} of {len(checks)} checks failed." if wrong else "All is well.")
    if not all(check.ok for check in checks):
        raise typer.Exit(EXIT_ERROR)


def examine() -> list[Check]:
    """All checks; none of them raises."""
    import jax
    import jax.numpy as jnp

    from .. import data

    devices = ", ".join(f"{device.platform}: {device.device_kind}" for device in jax.devices())
    wide = jnp.result_type(float) == jnp.float64
    shipped = [row.name for row in data.catalogue() if row.shipped]
    looked: list[Check] = [
        Check("Python", True, f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        Check("versions", True, ", ".join(f"{name} {_version(name)}" for name in LIBRARIES)),
        Check("devices", True, devices),
        Check("data folder", True, f"{data.data_folder()}; in the package: {', '.join(shipped)}"),
        Check("compiled programs", True, _cache()),
        Check("64-bit floats", wide, "on" if wide else
              "off: Gaussian processes need them; unset JAX_ENABLE_X64"),
    ]  # fmt: skip
    tests = {"precision of products": _products, "a nearly singular matrix": _cholesky, "a tiny fit": _tiny_fit}
    return looked + [_tried(name, test) for name, test in tests.items()]


def _tried(name: str, test: Callable[[], tuple[bool, str]]) -> Check:
    try:
        return Check(name, *test())
    except (DgpaxError, ArithmeticError, RuntimeError, OSError) as error:
        return Check(name, False, f"{type(error).__name__}: {str(error)[:300]}")


def _cache() -> str:
    import jax

    folder = jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]
    if folder is None:
        return "made anew in every run: there is no cache"
    held = [path.stat().st_size for path in Path(folder).glob("*-cache")]
    return f"{len(held)} kept in {folder}, {sum(held) / 1e6:.0f} MB"


def _products() -> tuple[bool, str]:
    """Against NumPy in double precision: a GPU's fast formats would be off by 1e-3."""
    import jax.numpy as jnp
    import numpy as np

    from ..linalg import matmul

    a = np.random.default_rng(0).normal(size=(128, 128))
    found = np.asarray(matmul(jnp.asarray(a), jnp.asarray(a).T))
    error = float(np.max(np.abs(found - a @ a.T)) / np.max(np.abs(a @ a.T)))
    return error < MOST_ERROR[found.dtype.name], f"relative error {error:.1e} in {found.dtype}"


def _cholesky() -> tuple[bool, str]:
    import jax.numpy as jnp
    import numpy as np

    from ..linalg import safe_cholesky

    x = np.linspace(0.0, 1.0, 100)
    K = jnp.asarray(np.exp(-0.5 * ((x[:, None] - x) / 0.5) ** 2))
    L = np.asarray(safe_cholesky(K).factor)
    error = float(np.max(np.abs(L @ L.T - np.asarray(K))))
    return error < 1e-3, f"factorised; off by {error:.1e}"


def _tiny_fit() -> tuple[bool, str]:
    """Sines, saved and loaded."""
    import numpy as np

    import dgpax

    x = np.linspace(0.0, 6.0, 40)[:, None]
    train = dgpax.dataset(x, np.sin(x))
    fitted = dgpax.fit(dgpax.gp_regression(train), train, progress=False)
    with tempfile.TemporaryDirectory() as folder:
        dgpax.save(fitted, Path(folder) / "tiny.dgpax")
        again = dgpax.load_model(Path(folder) / "tiny.dgpax")
    error = float(dgpax.metrics.rmse(np.sin(x + 0.05), dgpax.predict(again, x + 0.05)))
    return error < 0.05, f"error {error:.1e} between the rows, in {fitted.report.seconds:.1f} s; saved and loaded"


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return "missing"
