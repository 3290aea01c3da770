"""`dgpax suggest`, `dgpax tell` and `dgpax sensitivity`: a study of a simulator on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ._app import app, listing, print_json, say
from ._csv import csv_text, refuse_overwriting
from ._options import Json, Seed

if TYPE_CHECKING:
    from ..design import Study

StudyPath = Annotated[Path, typer.Argument(help="The file of the study. `suggest` makes it.")]
Bound = Annotated[
    list[str] | None,
    typer.Option(
        help="An input and its bounds, speed=0:3; whole numbers, count=1:9:whole; one of several, colour=red|blue. "
        "Once for every input."
    ),
]


@app.command("suggest")
def suggest_command(
    study: StudyPath,
    n: Annotated[int, typer.Option("-n", min=1, help="How many runs should be under way.")] = 1,
    bound: Bound = None,
    criterion: Annotated[
        str | None,
        typer.Option(help="For a new study: alc, variance, vigf (learn it all), ei, thompson (the least value)."),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="CSV file to write. [default: print it]")] = None,
    report: Annotated[Path | None, typer.Option(help="HTML file to write: how the study stands.")] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Say where a simulator should run next. Runs that were suggested and not told yet come first.

    Examples: dgpax suggest study.dgpax --bound speed=0:3 --bound angle=-45:45 --criterion ei -n 4 ·
    dgpax suggest study.dgpax -n 4 --output next.csv
    """
    if output is not None:
        refuse_overwriting(output, study)
    opened = _opened(study, bound or [], criterion, seed)
    rows = opened.ask(n)
    columns = {name: [row[name] for row in rows] for name in opened.space.names}
    if output is not None:
        output.write_text(csv_text(columns), encoding="utf-8")
        say(f"{len(rows)} runs written to {output}", quiet=json)
    if report is not None:
        from ..report import write_study

        write_study(report, opened)
        say(f"report: {report}", quiet=json)
    if json:
        print_json({"runs": rows, "told": opened.num_runs, "advice": opened.advice})
    elif output is None:
        typer.echo(csv_text(columns), nl=False)
    if not json and (output is not None or report is not None):
        say(opened.advice, style="bold")


@app.command("tell")
def tell_command(
    study: StudyPath,
    results: Annotated[str, typer.Argument(help="A CSV or Parquet file: the inputs by name, and what came out.")],
    target: Annotated[
        list[str] | None, typer.Option(help="A column with values; repeatable. [default: all that are no inputs]")
    ] = None,
    json: Json = False,
) -> None:
    """Tell a study what came out. A run without a value failed.

    Examples: dgpax tell study.dgpax results.csv · dgpax tell study.dgpax results.csv --target drag
    """
    from ..data import read_table
    from ..design import Study

    opened = Study.load(study)
    names = opened.space.names
    words = tuple(name for name in names if opened.space.has_words(name))
    table = read_table(results, categories=words)
    missing = [name for name in (*names, *(target or ())) if name not in table.columns]
    if missing:
        raise InputError(f"{results} has no column {', '.join(missing)}. It has: {', '.join(table.columns)}.")
    targets = target or [name for name in table.columns if name not in names]
    if not targets:
        raise InputError(f"{results} has no column with values, only the inputs {', '.join(names)}.")
    columns = {name: table.columns[name].values.tolist() for name in (*names, *targets)}
    rows = [dict(zip(names, row, strict=True)) for row in zip(*[columns[name] for name in names], strict=True)]
    values = [dict(zip(targets, row, strict=True)) for row in zip(*[columns[name] for name in targets], strict=True)]
    opened.tell(rows, values)
    failed = sum(any(value != value for value in row.values()) for row in values)
    if json:
        print_json({"told": opened.num_runs, "new": len(rows), "failed": failed})
    else:
        say(f"{len(rows)} runs told{f', {failed} of them failed' if failed else ''}; {opened.num_runs} in all.")


@app.command("sensitivity")
def sensitivity_command(
    study: Annotated[Path, typer.Argument(help="The file of a study.")],
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Say which inputs of a study matter: shares of the variance of what comes out, with 90% intervals.

    Example: dgpax sensitivity study.dgpax
    """
    from ..design import Study
    from ..sensitivity import sobol_indices

    opened = Study.load(study)
    found = sobol_indices(opened.fitted(), opened.space, seed=seed)
    first, total = found.interval()
    if json:
        print_json({
            name: {
                "alone": float(found.first[:, i].mean()), "alone_interval": first[:, i].tolist(),
                "total": float(found.total[:, i].mean()), "total_interval": total[:, i].tolist(),
            }
            for i, name in enumerate(found.names)
        })  # fmt: skip
        return
    rows = [
        (found.names[i], _with_interval(found.first[:, i].mean(), first[:, i]),
         _with_interval(found.total[:, i].mean(), total[:, i]))
        for i in found.order
    ]  # fmt: skip
    say(listing(("input", "alone", "with all others"), rows, "Shares of the variance over the box"))


def _with_interval(value: float, ends: Any) -> str:
    return f"{value:.3f} ({ends[0]:.3f}, {ends[1]:.3f})"


def _opened(path: Path, bounds: list[str], criterion: str | None, seed: int) -> Study:
    """The study in the file, or a new one."""
    from ..design import Study

    if path.exists():
        if bounds or criterion is not None:
            raise InputError(f"{path} has bounds and a criterion already. Leave them out, or name another file.")
        return Study.load(path)
    if not bounds:
        raise InputError(f"There is no study {path} yet. Give every input a --bound, such as --bound speed=0:3.")
    return Study(dict(map(_bound, bounds)), criterion or "alc", path=path, seed=seed)


def _bound(text: str) -> tuple[str, Any]:
    """An input and its bounds, from words."""
    from ..design import OneOf, Whole

    name, _, said = text.partition("=")
    try:
        if name and "|" in said:
            return name, OneOf(tuple(map(_number_or_word, said.split("|"))))
        low, high, *whole = said.split(":")
        if name and whole in ([], ["whole"]):
            return name, Whole(int(low), int(high)) if whole else (float(low), float(high))
    except ValueError:
        pass
    raise InputError(f"--bound {text!r} isn't understood. Write speed=0:3, count=1:9:whole or colour=red|blue.")


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
