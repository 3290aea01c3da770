"""`dgpax fit`."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import __version__
from ._app import app, file_stem, metric_table, print_json, say
from ._options import Category, Dates, Decimal, Gap, Json, Seed

if TYPE_CHECKING:
    from ..data import Dataset
    from ..fits import AbstractFit
    from ._source import Source


@app.command("fit")
def fit_command(
    source: Annotated[
        str, typer.Argument(help="A CSV or Parquet file, or a named dataset; `dgpax datasets` lists these.")
    ] = "energy",
    target: Annotated[str | None, typer.Option(help="The column to predict. [default: the last]")] = None,
    task: Annotated[str, typer.Option(help="auto, regression or classification; text targets are classes.")] = "auto",
    ignore: Annotated[list[str] | None, typer.Option(help="A column to leave out; may be given several times.")] = None,
    test_fraction: Annotated[float, typer.Option(help="Rows of a file to hold out, at random.")] = 0.2,
    decimal: Decimal = None,
    dates: Dates = None,
    gap: Gap = None,
    category: Category = None,
    split: Annotated[int, typer.Option(min=0, help="Which standard split of a named dataset to hold out.")] = 0,
    inference: Annotated[
        str | None,
        typer.Option(help="variational, sghmc or stride; exact, or sparse, for one layer. [default: variational]"),
    ] = None,
    layers: Annotated[int | None, typer.Option(min=1, help="Layers. [default: as suits the inference]")] = None,
    posterior: Annotated[
        str | None,
        typer.Option(
            help="Of variational inference: mean-field, stripes-and-arrow, fully-coupled, chain, … "
            "[default: mean-field]"
        ),
    ] = None,
    num_inducing: Annotated[
        int | None, typer.Option(min=1, help="Inducing points of every layer. [default: by the number of rows]")
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Stop training after this time.")] = None,
    output: Annotated[Path, typer.Option(help="Folder for the model, the report and the plot.")] = Path("dgpax-output"),
    with_report: Annotated[bool, typer.Option("--report/--no-report", help="Write the HTML report.")] = True,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Fit a deep Gaussian process, print its metrics on held-out rows, and write the model, a report and a plot.

    Text columns and missing values are fine; `dgpax look` shows how a file is understood. With the same words, the
    model is that of DeepGPRegressor or DeepGPClassifier.

    Examples: dgpax fit · dgpax fit houses.csv --target price · dgpax fit flowers.csv --target species ·
    dgpax fit concrete --split 3 · dgpax fit energy --inference sparse --num-inducing 50 ·
    dgpax fit energy --layers 3 --posterior stripes-and-arrow
    """
    from .. import recipes, report
    from ..parameters import table
    from ..recipes import Recipe
    from ._source import Choice, Wishes, read_source

    wishes = Wishes(decimal, dates, tuple(gap or ()), tuple(category or ()))
    found = read_source(source, Choice(target, task, ignore or (), test_fraction, split, seed, wishes))
    train, test = found.train, found.test
    say(f"{found.name}, {found.note}: {train.num_rows} rows to train, {test.num_rows} held out", quiet=json)
    recipe = Recipe(
        inference or Recipe.inference, posterior or Recipe.posterior, num_layers=layers, num_inducing=num_inducing,
        max_time=max_seconds, seed=seed,
    )  # fmt: skip
    fitted = recipes.train(recipe, found.rows())
    scores = report.scores(fitted, test, seed=seed)
    for part in (table(fitted.model), str(fitted.report), metric_table(scores)):
        say(part, quiet=json)
    depth, number = layers and f"{layers}-layers", str(split) if found.columns is None else None
    words = [file_stem(Path(source).stem), inference, depth, number]
    stem = output / "-".join(word for word in words if word)
    files = _write(stem, fitted, found, with_report, seed)
    for kind, path in files.items():
        say(f"{kind.capitalize()} written to {path}", quiet=json)
    say(f"Predictions of other rows: dgpax predict {shlex.quote(str(files['model']))} TABLE", quiet=json, style="dim")
    if json:
        print_json({"scores": scores, "files": {kind: str(path) for kind, path in files.items()},
                    "rows": {"train": train.num_rows, "held out": test.num_rows}, "inference": recipe.inference,
                    "steps": fitted.report.steps, "seconds": fitted.report.seconds})  # fmt: skip


def provenance(source: str) -> dict[str, str]:
    """What a report says about where it comes from."""
    command = shlex.join(["dgpax", *sys.argv[1:]])
    return {
        "command": command,
        "data": source,
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC by dgpax {__version__}",
    }


def _write(stem: Path, fitted: AbstractFit, source: Source, with_report: bool, seed: int) -> dict[str, Path]:
    """The model, the report and the plot."""
    from .. import report
    from ..io import TableModel, save

    details = provenance(source.name)
    files = {"model": stem.with_name(f"{stem.name}.dgpax"), "plot": stem.with_name(f"{stem.name}.png")}
    model = TableModel(fitted, source.encoding, source.target, source.classes, tuple(details.items()), source.written)
    stem.parent.mkdir(parents=True, exist_ok=True)
    save(model, files["model"])
    _draw(fitted, source.test, files["plot"], seed)
    if with_report:
        files["report"] = report.write(
            stem.with_name(f"{stem.name}.html"), fitted, source.train, source.test, title=f"{source.target}: a report",
            classes=source.classes, columns=source.columns, encoding=source.encoding, details=details, seed=seed,
        )  # fmt: skip
    return files


def _draw(fitted: AbstractFit, test: Dataset, path: Path, seed: int) -> None:
    import numpy as np
    from matplotlib.figure import Figure

    from .. import plot
    from ..likelihoods import GaussianNoise, HeteroskedasticGaussian
    from ..prediction import predict

    gaussian = isinstance(fitted.model.likelihood, GaussianNoise | HeteroskedasticGaussian)
    figure = Figure(figsize=(13, 4) if gaussian else (5, 4), layout="constrained")
    axes = figure.subplots(1, 3 if gaussian else 1, squeeze=False)[0]
    plot.training(fitted.report, ax=axes[-1])
    if gaussian:
        prediction = predict(fitted, test.x, seed=seed)
        plot.predictions(np.asarray(test.y), prediction, ax=axes[0])
        plot.calibration(np.asarray(test.y), prediction, ax=axes[1])
    figure.savefig(path, dpi=130)
