"""The command line: `dgpax fit` with no arguments runs on data that ships with the package."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from . import __version__, architectures, data, metrics, plot
from .errors import DgpaxError, DgpaxWarning
from .inference import Fit, Variational, fit
from .model import DeepGP
from .parameters import table
from .prediction import predict

app = typer.Typer(
    help="Deep Gaussian processes: calibrated predictions from a table.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()


@app.command("fit")
def fit_command(
    name: Annotated[str, typer.Argument(help="A named dataset; `dgpax datasets` lists them.")] = "energy",
    split: Annotated[int, typer.Option(help="Which of its standard splits to hold out.")] = 0,
    inference: Annotated[
        str | None, typer.Option(help="exact, sparse for many rows, variational or sghmc for several layers.")
    ] = None,
    layers: Annotated[int, typer.Option(min=1, help="Layers; more than one make a deep GP.")] = 1,
    posterior: Annotated[
        str, typer.Option(help="Of variational inference: mean-field, stripes-and-arrow, fully-coupled, chain, …")
    ] = "mean-field",
    num_inducing: Annotated[int, typer.Option(help="Inducing points, if inference isn't exact.")] = 100,
    output: Annotated[Path, typer.Option(help="Folder for the plot.")] = Path("dgpax-output"),
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
) -> None:
    """Fit a Gaussian process, print its metrics on held-out rows, and plot them.

    Examples: dgpax fit · dgpax fit concrete --split 3 · dgpax fit energy --inference sparse --num-inducing 50 ·
    dgpax fit energy --layers 2 · dgpax fit energy --layers 3 --posterior stripes-and-arrow
    """
    train, test = data.load(name).split(split)
    console.print(f"[bold]{name}[/], split {split}: {train.num_rows} rows to train, {test.num_rows} held out")
    inference = inference or ("exact" if layers == 1 else "variational")
    method = Variational(posterior) if inference == "variational" else inference
    fitted = fit(_model(train, inference, layers, num_inducing, seed), train, method, seed=seed)
    prediction = predict(fitted, test.x)
    console.print(table(fitted.model))
    console.print(str(fitted.report))
    console.print(_metric_table(metrics.regression_report(test.y, prediction)))
    depth = "" if layers == 1 else f"-{layers}-layers"
    path = _draw(fitted, test, prediction, output / f"{name}-{inference}{depth}-{split}.png")
    console.print(f"Plot written to {path}")


@app.command()
def datasets() -> None:
    """List the named datasets, and which of them ship with the package."""
    listing = Table("name", "rows", "columns", "task", "shipped", "licence")
    for row in data.catalogue():
        listing.add_row(
            row.name, str(row.num_rows), str(row.num_inputs), row.task, "yes" if row.shipped else "", row.licence
        )
    console.print(listing)


@app.command()
def version() -> None:
    """Print the version."""
    console.print(__version__)


def _model(train: data.Dataset, inference: str, layers: int, num_inducing: int, seed: int) -> DeepGP:
    if layers > 1 or inference in ("variational", "sghmc"):
        return architectures.deep_gp(train, layers, num_inducing, seed=seed)
    if inference == "sparse":
        return architectures.sparse_gp_regression(train, num_inducing, seed=seed)
    return architectures.gp_regression(train)


def _metric_table(report: dict[str, float]) -> Table:
    listing = Table("metric", "held-out rows", title="How good, and how honest")
    for name, value in report.items():
        listing.add_row(name, f"{value:.4g}")
    return listing


def _draw(fitted: Fit, test: data.Dataset, prediction, path: Path) -> Path:
    from matplotlib.figure import Figure

    path.parent.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(13, 4), layout="constrained")
    axes = figure.subplots(1, 3)
    plot.predictions(np.asarray(test.y), prediction, ax=axes[0])
    plot.calibration(np.asarray(test.y), prediction, ax=axes[1])
    plot.training(fitted.report, ax=axes[2])
    figure.savefig(path, dpi=130)
    return path


def main() -> None:
    """Run the command line; an error of ours is one sentence and exit code 1."""
    warnings.simplefilter("always", DgpaxWarning)
    try:
        app()
    except DgpaxError as error:
        Console(stderr=True).print(f"[red]error:[/] {error}")
        sys.exit(1)
