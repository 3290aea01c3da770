"""`dgpax doctor`: is this installation in order?"""

from __future__ import annotations

import importlib.metadata
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import typer

from .. import data
from ..architectures import gp_regression
from ..data import dataset
from ..errors import DgpaxError
from ..inference import fit
from ..io import load_model, save
from ..linalg import matmul, safe_cholesky
from ..metrics import rmse
from ..prediction import predict
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
    devices = ", ".join(f"{device.platform}: {device.device_kind}" for device in jax.devices())
    wide = jnp.result_type(float) == jnp.float64
    shipped = [row.name for row in data.catalogue() if row.shipped]
    looked: list[Check] = [
        Check("Python", True, f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        Check("versions", True, ", ".join(f"{name} {_version(name)}" for name in LIBRARIES)),
        Check("devices", True, devices),
        Check("data folder", True, f"{data.data_folder()}; in the package: {', '.join(shipped)}"),
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


def _products() -> tuple[bool, str]:
    """Against NumPy in double precision: a GPU's fast formats would be off by 1e-3."""
    a = np.random.default_rng(0).normal(size=(128, 128))
    found = np.asarray(matmul(jnp.asarray(a), jnp.asarray(a).T))
    error = float(np.max(np.abs(found - a @ a.T)) / np.max(np.abs(a @ a.T)))
    return error < MOST_ERROR[found.dtype.name], f"relative error {error:.1e} in {found.dtype}"


def _cholesky() -> tuple[bool, str]:
    x = np.linspace(0.0, 1.0, 100)
    K = jnp.asarray(np.exp(-0.5 * ((x[:, None] - x) / 0.5) ** 2))
    L = np.asarray(safe_cholesky(K).factor)
    error = float(np.max(np.abs(L @ L.T - np.asarray(K))))
    return error < 1e-3, f"factorised; off by {error:.1e}"


def _tiny_fit() -> tuple[bool, str]:
    """Sines, saved and loaded."""
    x = np.linspace(0.0, 6.0, 40)[:, None]
    fitted = fit(gp_regression(train := dataset(x, np.sin(x))), train, progress=False)
    with tempfile.TemporaryDirectory() as folder:
        save(fitted, Path(folder) / "tiny.dgpax")
        again = load_model(Path(folder) / "tiny.dgpax")
    error = float(rmse(np.sin(x + 0.05), predict(again, x + 0.05)))
    return error < 0.05, f"error {error:.1e} between the rows, in {fitted.report.seconds:.1f} s; saved and loaded"


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return "missing"
