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
    from ..fits import AbstractFit
    from ..report import Judgement
    from ._source import Source


@app.command("fit")
def fit_command(
    source: Annotated[
        str, typer.Argument(help="A CSV or Parquet file, or a named dataset; `dgpax datasets` lists these.")
    ] = "energy",
    target: Annotated[str | None, typer.Option(help="The column to predict. [default: the last]")] = None,
    task: Annotated[str, typer.Option(help="auto, regression or classification; text targets are classes.")] = "auto",
    ignore: Annotated[list[str] | None, typer.Option(help="A column to leave out; may be given several times.")] = None,
    test_fraction: Annotated[
        float | None,
        typer.Option(
            help="Rows of a file to judge by: held out, judged, then trained on like the others; 0 is "
            "cross-validation. [default: 0.2; cross-validation below 200 rows]"
        ),
    ] = None,
    hold_out: Annotated[str, typer.Option(help="Hold out rows at random, or the last ones in time.")] = "random",
    keep_held_out: Annotated[
        bool, typer.Option("--keep-held-out", help="Save the model that never saw the held-out rows.")
    ] = False,
    decimal: Decimal = None,
    dates: Dates = None,
    gap: Gap = None,
    category: Category = None,
    split: Annotated[int, typer.Option(min=0, help="Which standard split of a named dataset to hold out.")] = 0,
    inference: Annotated[
        str | None,
        typer.Option(help="variational, sghmc or stride; exact, or sparse, for one layer. [default: variational]"),
    ] = None,
    layers: Annotated[
        str, typer.Option(help="How many; auto weighs one against two up to 1,000 rows, else as suits the inference.")
    ] = "auto",
    likelihood: Annotated[
        str | None,
        typer.Option(
            help="What targets are: gaussian, student_t (outliers), heteroskedastic, poisson or negative_binomial "
            "(counts). [default: by the rows]"
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(help="rbf, matern52, matern32 or matern12: from smooth to rough. [default: by the rows]"),
    ] = None,
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
    """Fit a deep Gaussian process, judge it on held-out rows, and write the model, a report and a plot.

    The model that is written is trained on all rows of a file, once others were judged on rows that they hadn't seen.
    Text columns and missing values are fine; `dgpax look` shows how a file is understood. With the same words, the
    model is that of DeepGPRegressor or DeepGPClassifier.

    Examples: dgpax fit · dgpax fit houses.csv --target price · dgpax fit flowers.csv --target species ·
    dgpax fit sales.csv --hold-out last · dgpax fit energy --inference sparse --num-inducing 50 ·
    dgpax fit energy --layers 3 --posterior stripes-and-arrow
    """
    from .. import recipes, report
    from ..parameters import table
    from ..recipes import Recipe
    from ._judging import judge, plan
    from ._source import Choice, Wishes

    wishes = Wishes(decimal, dates, tuple(gap or ()), tuple(category or ()))
    work = plan(source, Choice(target, task, ignore or (), test_fraction, split, seed, wishes, hold_out), keep_held_out)
    say(work.in_short, quiet=json)
    recipe = Recipe(
        inference or Recipe.inference, posterior or Recipe.posterior, likelihood, kernel, _depth(layers), num_inducing,
        max_time=None if max_seconds is None else max_seconds / work.num_fits, seed=seed,
    )  # fmt: skip

    def train(part: Source, which: str) -> AbstractFit:
        say(which, quiet=json or work.num_fits == 1, style="dim")
        return recipes.train(recipe, part.rows())

    fitted, judged = judge(work, train, seed)
    found, scores = work.saved, judged.scored.scores
    honesty = report.verdict(judged)
    for part in (table(fitted.model), str(fitted.report), metric_table(scores), f"{honesty.word}. {honesty.sentence}"):
        say(part, quiet=json)
    numbered = str(split) if work.found is None else None
    words = [file_stem(Path(source).stem), inference, None if layers == "auto" else f"{layers}-layers", numbered]
    stem = output / "-".join(word for word in words if word)
    files = _write(stem, fitted, found, judged, with_report, seed)
    for kind, path in files.items():
        say(f"{kind.capitalize()} written to {path}", quiet=json)
    say(f"Predictions of other rows: dgpax predict {shlex.quote(str(files['model']))} TABLE", quiet=json, style="dim")
    if json:
        print_json({"scores": scores, "files": {kind: str(path) for kind, path in files.items()},
                    "rows": {"train": found.train.num_rows, "judged": judged.data.num_rows},
                    "verdict": {"word": honesty.word, "sentence": honesty.sentence,
                                "checks": [check._asdict() for check in honesty.checks]},
                    "inference": recipe.inference,
                    "steps": fitted.report.steps, "seconds": fitted.report.seconds})  # fmt: skip


def _depth(layers: str) -> int | None:
    if layers == "auto":
        return None
    if not layers.isdecimal() or int(layers) < 1:
        wanted = f"{layers!r} is neither auto nor a number of layers, 1 or more."
        raise typer.BadParameter(wanted, param_hint="--layers")
    return int(layers)


def _file_name(source: str, *words: str | None) -> str:
    """Without words, that of the table."""
    return "-".join(word for word in (file_stem(Path(source).stem), *words) if word)


def provenance(source: str) -> dict[str, str]:
    """What a report says about where it comes from."""
    command = shlex.join(["dgpax", *sys.argv[1:]])
    return {
        "command": command,
        "data": source,
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC by dgpax {__version__}",
    }


def _write(
    stem: Path, fitted: AbstractFit, source: Source, judged: Judgement, with_report: bool, seed: int
) -> dict[str, Path]:
    """The model, the report and the plot."""
    from .. import report
    from ..io import TableModel, save

    details = provenance(source.name)
    files = {"model": stem.with_name(f"{stem.name}.dgpax"), "plot": stem.with_name(f"{stem.name}.png")}
    model = TableModel(fitted, source.encoding, source.target, source.classes, tuple(details.items()), source.written)
    stem.parent.mkdir(parents=True, exist_ok=True)
    save(model, files["model"])
    _draw(fitted, judged, files["plot"])
    if with_report:
        files["report"] = report.write(
            stem.with_name(f"{stem.name}.html"), fitted, source.train, judged, title=f"{source.target}: a report",
            classes=source.classes, columns=source.columns, encoding=source.encoding, details=details, seed=seed,
        )  # fmt: skip
    return files


def _draw(fitted: AbstractFit, judged: Judgement, path: Path) -> None:
    from matplotlib.figure import Figure

    from .. import plot
    from ..report import Regression

    scored = judged.scored
    numbers = isinstance(scored, Regression)
    figure = Figure(figsize=(13, 4) if numbers else (5, 4), layout="constrained")
    axes = figure.subplots(1, 3 if numbers else 1, squeeze=False)[0]
    plot.training(fitted.report, ax=axes[-1])
    if isinstance(scored, Regression):
        plot.intervals(scored.observed, scored.mean, *scored.intervals[scored.level], ax=axes[0])
        plot.ranks(scored.ranks, ax=axes[1])
    figure.savefig(path, dpi=130)
