"""Every annotation becomes an assertion during tests; every random key is shown when a test fails."""

from __future__ import annotations

import gc
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # two test processes on two cores: threads would only wait
os.environ["DGPAX_CACHE"] = "off"  # what a test compiles, it compiles itself

import jax
from jaxtyping import install_import_hook

install_import_hook("dgpax", "beartype.beartype")

import jax.random as jr  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402

import dgpax  # noqa: E402, F401

jax.config.update("jax_platforms", "cpu")


@pytest.fixture(autouse=True, scope="module")
def programs_forgotten():
    """Compiled programs are kept by module only: thousands of them in one process end in a crash of the compiler."""
    yield
    jax.clear_caches()
    gc.collect()


@pytest.fixture
def key():
    return jr.key(0)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
