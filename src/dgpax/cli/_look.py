"""`dgpax look`: how a file is understood, before anything is fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ._app import app, listing, print_json, say
from ._options import Category, Dates, Decimal, Gap, Json

if TYPE_CHECKING:
    from ..data import Table

SEPARATORS = {
    ",": "commas",
    ";": "semicolons",
    "\t": "tabs",
    "|": "pipes",
    " ": "spaces",
    "": "nothing: there is one column",
}
MOST_SHOWN = 60


@app.command("look")
def look_command(
    source: Annotated[str, typer.Argument(metavar="TABLE", help="A CSV or Parquet file.")],
    target: Annotated[str | None, typer.Option(help="The column to predict. [default: the last]")] = None,
    decimal: Decimal = None,
    dates: Dates = None,
    gap: Gap = None,
    category: Category = None,
    json: Json = False,
) -> None:
    """Show how a file is understood, column by column. Exit code 1 if a column can't be used.

    Examples: dgpax look houses.csv · dgpax look houses.csv --json · dgpax look houses.csv --decimal ,
    """
    from ..data import read_table

    table = read_table(source, decimal=decimal, dates=dates, gaps=gap or (), categories=category or ())
    problems = [column.problem for column in table.columns.values() if column.problem]
    notes = [*table.notes, *_on_target(table, target)]
    if json:
        print_json(_as_json(table, notes, problems))
    else:
        say(_in_short(source, table))
        say(listing(("column", "kind", "missing", "first values, as understood"), _rows(table)))
        for note in notes:
            say(f"note: {note}", style="yellow")
    if problems:
        raise InputError("\n".join(problems))


def _on_target(table: Table, target: str | None) -> list[str]:
    if target is None and all(column.written.kind == "date" for column in list(table.columns.values())[-1:]):
        return []
    from ._source import doubt_about_task, target_of

    note = doubt_about_task(table.columns[target_of(table, target)])
    return [note] if note else []


def _as_json(table: Table, notes: list[str], problems: list[str]) -> dict[str, Any]:
    columns = [
        {"name": column.name, "kind": column.kind, "missing": column.missing, "first": column.first()}
        for column in table.columns.values()
    ]
    return {
        "rows": table.num_rows,
        "separator": table.separator,
        "encoding": table.encoding,
        "notes": notes,
        "problems": problems,
        "columns": columns,
    }


def _in_short(source: str, table: Table) -> str:
    size = f"{source}: {table.num_rows:,} rows, {len(table.columns)} columns"
    if table.separator is None:
        return size
    return f"{size}, separated by {SEPARATORS.get(table.separator, repr(table.separator))}, in {table.encoding}"


def _rows(table: Table) -> list[tuple[str, ...]]:
    return [
        (column.name, column.kind, f"{column.missing:,}" if column.missing else "", _first_values(column.first()))
        for column in table.columns.values()
    ]


def _first_values(values: list[Any]) -> str:
    text = ", ".join("·" if value is None else str(value) for value in values)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
