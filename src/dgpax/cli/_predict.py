"""`dgpax predict`, `dgpax evaluate` and `dgpax report`: what a saved model says about a table."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ._app import app, metric_table, print_json, say
from ._csv import csv_text, refuse_overwriting
from ._fit import provenance
from ._options import Json

if TYPE_CHECKING:
    import numpy as np

    from ..data import Dataset, Table
    from ..io import TableModel

ModelPath = Annotated[Path, typer.Argument(help="A model that `dgpax fit` or dgpax.save wrote.")]
TableName = Annotated[str, typer.Argument(help="A CSV or Parquet file, or a named dataset (its held-out rows).")]
Level = Annotated[float, typer.Option(min=0.01, max=0.999, help="Probability of the intervals.")]
Split = Annotated[int, typer.Option(min=0, help="Which standard split of a named dataset.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the samples of inner layers.")]
Target = Annotated[str | None, typer.Option(help="The column with the truth. [default: that of the training data]")]


@app.command("predict")
def predict_command(
    model: ModelPath,
    source: Annotated[str, typer.Argument(metavar="TABLE", help="A CSV or Parquet file with the input columns.")],
    output: Annotated[Path | None, typer.Option(help="CSV file to write. [default: print it]")] = None,
    level: Level = 0.9,
    quantile: Annotated[list[float] | None, typer.Option(help="A quantile to add, such as 0.99; repeatable.")] = None,
    keep: Annotated[str | None, typer.Option(help="Columns of the table to write, too, such as id,date.")] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Predict the rows of a table: mean, standard deviation and interval, or the probability of every class.

    Examples: dgpax predict model.dgpax new.csv --output predictions.csv · dgpax predict model.dgpax new.csv --json ·
    dgpax predict model.dgpax new.csv --keep id,date
    """
    from ._model import inputs_of, load_table_model
    from ._source import read_with_notes

    if output is not None:
        refuse_overwriting(output, source, model)
    loaded = load_table_model(model)
    table = read_with_notes(source, like=loaded.written)
    kept = _kept(table, keep)
    columns = predictions(loaded, inputs_of(loaded, table), level, quantile or [], seed)
    listed = kept | {name: values.tolist() for name, values in columns.items()}
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(csv_text(listed), encoding="utf-8")
        say(f"{len(next(iter(listed.values())))} predictions written to {output}", quiet=json)
    if json:
        print_json(listed)
    elif output is None:
        typer.echo(csv_text(listed), nl=False)


@app.command("evaluate")
def evaluate_command(
    model: ModelPath, source: TableName, target: Target = None, level: Level = 0.9, split: Split = 0, seed: Seed = 0,
    json: Json = False,
) -> None:  # fmt: skip
    """Score a saved model on a table with the truth in it.

    Examples: dgpax evaluate model.dgpax new.csv · dgpax evaluate dgpax-output/energy-0.dgpax energy --json
    """
    from .. import report

    loaded, test = _to_judge(model, source, split, target)
    scores = report.scores(loaded.fit, test, level=level, seed=seed)
    say(f"{source}: {test.num_rows} rows, target {loaded.target}", quiet=json)
    say(metric_table(scores), quiet=json)
    if json:
        print_json({"rows": test.num_rows, "target": loaded.target, "level": level, "scores": scores})


@app.command("report")
def report_command(
    model: ModelPath,
    source: TableName,
    output: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("report.html"),
    target: Target = None,
    level: Level = 0.9,
    split: Split = 0,
    seed: Seed = 0,
) -> None:
    """Write the HTML report of a saved model, judged on a table with the truth in it.

    Examples: dgpax report model.dgpax new.csv --output new.html
    """
    from .. import report

    refuse_overwriting(output, source, model)
    loaded, test = _to_judge(model, source, split, target)
    made = {f"{key} (training)": value for key, value in loaded.details} | provenance(source)
    path = report.write(
        output, loaded.fit, None, test, title=f"{loaded.target}: a report", level=level, classes=loaded.classes,
        encoding=loaded.encoding, details=made, seed=seed,
    )  # fmt: skip
    say(f"Report written to {path}")


def predictions(
    model: TableModel, x: np.ndarray, level: float, quantiles: list[float], seed: int
) -> dict[str, np.ndarray]:
    """The columns of a table of predictions."""
    import numpy as np

    from ..likelihoods import AbstractClassification
    from ..prediction import class_probabilities, predict_moments, predict_quantiles

    likelihood, name = model.fit.model.likelihood, model.target
    if isinstance(likelihood, AbstractClassification):
        p = np.asarray(class_probabilities(model.fit, x, seed=seed))
        classes = model.classes or tuple(str(i) for i in range(p.shape[1]))
        chosen = np.array(classes, dtype=object)[p.argmax(axis=1)]
        return {name: chosen} | {f"p({label})": p[:, i] for i, label in enumerate(classes)}
    mean, variance = predict_moments(model.fit, x, seed=seed)
    tails = (0.5 - 0.5 * level, 0.5 + 0.5 * level)
    low, high, *others = np.asarray(predict_quantiles(model.fit, x, [*tails, *quantiles], seed=seed))[:, :, 0]
    found = {f"{name} mean": np.asarray(mean)[:, 0], f"{name} std": np.sqrt(np.asarray(variance))[:, 0]}
    found |= {f"{name} low {level:.4g}": low, f"{name} high {level:.4g}": high}
    return found | {f"{name} q{q:g}": values for q, values in zip(quantiles, others, strict=True)}


def _to_judge(path: Path, source: str, split: int, target: str | None) -> tuple[TableModel, Dataset]:
    """The model, and the rows with the truth, which `target` may say is in another column."""
    from ._model import load_table_model, with_target
    from ._source import table_of

    loaded = load_table_model(path)
    model = loaded if target is None else dataclasses.replace(loaded, target=target)
    return model, with_target(model, table_of(source, split, model.written))


def _kept(table: Table, names: str | None) -> dict[str, list[str]]:
    """Columns as they stand in the file, by names with commas between them."""
    chosen = [] if names is None else [names] if names in table.columns else [name.strip() for name in names.split(",")]
    table.require(chosen)
    return {name: list(table.columns[name].cells) for name in chosen}
