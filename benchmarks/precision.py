"""float32 covariances on this device against float64: `python -m benchmarks.precision [--results FOLDER]`.

On a GPU the default float32 matrix product is TF32, which keeps ten bits. The row "plain product" shows what that does
to an inner product; the kernels ask for full precision and must not show it.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import dgpax
from dgpax.data import Dataset
from dgpax.inducing import Points
from dgpax.kernels import RBF, AbstractKernel, ArcCosine, Linear, Matern12, Matern52
from dgpax.objectives import collapsed_bound, log_evidence
from dgpax.parameters import cast

from ._record import RESULTS, Record, command_line, write
from ._tables import Column, Table

TITLE = "Precision of float32 on a device"
INTRODUCTION = """\
Largest difference from float64, relative to the largest entry, of covariances between 500 and 300 points in 20
dimensions (where distances come from matrix products), and relative differences of objectives on 500 rows."""
TABLES = (
    Table(
        title="float32 against float64",
        kind="precision",
        names=("quantity", "device"),
        columns=(Column("error", "relative error", ".1e"),),
        published=(),
    ),
)


def main(argv: list[str] | None = None) -> Path:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    started = time.perf_counter()
    rng = np.random.default_rng(0)
    x, z = (jnp.asarray(rng.normal(size=(rows, 20))) for rows in (500, 300))
    records = [_record("plain product", jnp.matmul(single(x), single(z).T), x @ z.T)]
    kernels: dict[str, AbstractKernel] = {
        "RBF": RBF(4.0),
        "Matern12": Matern12(4.0),
        "Matern52": Matern52(4.0),
        "Linear": Linear(),
        "ArcCosine": ArcCosine(1),
    }
    for name, kernel in kernels.items():
        records.append(
            _record(f"{name} cross", cast(kernel, jnp.float32).cross(single(x), single(z)), kernel.cross(x, z))
        )
        records.append(_record(f"{name} gram", cast(kernel, jnp.float32).gram(single(x)), kernel.gram(x)))
    layer = dgpax.GPLayer(RBF(4.0), inducing=Points(z[:50]))
    model = dgpax.DeepGP(layer, dgpax.likelihoods.GaussianNoise(0.1))
    data = Dataset(x, jnp.sin(x[:, :1]))
    for objective in (log_evidence, collapsed_bound):
        low, high = (objective(*cast((model, data), dtype)).total for dtype in (jnp.float32, jnp.float64))
        records.append(_record(objective.__name__, low, high))
    for record in records:
        print(f"{record['quantity']:<18} {record['error']:.1e}")
    return write(
        "precision",
        records,
        command=command_line("benchmarks.precision", sys.argv[1:] if argv is None else argv),
        precision="float32 against float64",
        seeds=[0],
        seconds=time.perf_counter() - started,
        peers={},
        folder=arguments.results,
    )


def single(array):
    return array.astype(jnp.float32)


def _record(quantity: str, low, high) -> Record:
    error = float(jnp.max(jnp.abs(low.astype(jnp.float64) - high)) / jnp.max(jnp.abs(high)))
    return {"kind": "precision", "quantity": quantity, "device": jax.devices()[0].device_kind, "error": error}


if __name__ == "__main__":
    main()
