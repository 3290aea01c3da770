"""From a path to a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from ...errors import MissingDataError
from ._body import with_body
from ._head import with_head
from ._lines import separated
from ._parquet import is_text, parquet_columns, typed_column
from ._table import Table
from ._text import text_of
from ._understand import understand
from ._written import Wishes, Written

SEPARATED = (".csv", ".tsv", ".txt")
SUFFIXES = (*SEPARATED, *(f"{suffix}.gz" for suffix in SEPARATED), ".parquet", ".pq")
PARQUET = b"PAR1"


def is_table(source: str) -> bool:
    """Is it a file's name, rather than that of a dataset?"""
    return source.lower().endswith(SUFFIXES) or Path(source).is_file()


def read_table(
    path: str | Path,
    *,
    decimal: str | None = None,
    dates: str | None = None,
    gaps: Collection[str] = (),
    categories: Collection[str] = (),
    like: Sequence[Written] = (),
) -> Table:
    """The table in a CSV (or TSV, gzipped or not) or Parquet file, as a person would read it.

    What separates cells, the encoding, lines above and below the table, decimal marks, marks of thousands, currencies
    and the order of dates are found out; `notes` of the table say what was mended or could be meant otherwise. Where
    the file leaves a choice, you can say: `decimal` is "." or ",", `dates` "day-first" or "month-first", `gaps` are
    further marks of gaps, and `categories` columns to be taken as text. `like` is `written` of an earlier table, by
    which columns of the same names are read.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from dgpax.data import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "rent.csv").write_text("built;rent\\n28.01.1990;950,5\\n01.02.2004;1.278\\n")
    ...     table = read_table(Path(folder) / "rent.csv")
    >>> {name: (column.kind, column.first()) for name, column in table.columns.items()}
    {'built': ('date', ['1990-01-28', '2004-02-01']), 'rent': ('number', [950.5, 1278])}
    >>> print(*table.notes)
    Decimal commas or dots for thousands in the column 'rent': '950,5' is 950.5.
    """
    path = Path(path)
    wishes = Wishes(decimal, dates, tuple(gaps), tuple(categories)).checked()
    if not path.is_file():
        raise MissingDataError(f"There is no file {path}.")
    with path.open("rb") as file:
        is_parquet = file.read(len(PARQUET)) == PARQUET
    if is_parquet or path.suffix.lower() in (".parquet", ".pq"):
        table = _parquet(path, wishes, like)
    else:
        table = _separated(path, wishes, like)
    table.require(wishes.categories)
    return table


def _separated(path: Path, wishes: Wishes, like: Sequence[Written]) -> Table:
    text = text_of(path)
    lines, separator, on_lines = separated(text.content, str(path))
    sheet = with_body(with_head(lines, str(path)), str(path), separator)
    numbers = [row.number for row in sheet.rows]
    columns = zip(*(row.cells for row in sheet.rows), strict=True)
    cells = {name: list(column) for name, column in zip(sheet.names, columns, strict=True)}
    understood, notes = understand(cells, numbers, separator, wishes, like)
    return Table(understood, numbers, (*text.notes, *on_lines, *sheet.notes, *notes), separator, text.encoding)


def _parquet(path: Path, wishes: Wishes, like: Sequence[Written]) -> Table:
    entries = parquet_columns(path)
    numbers = list(range(1, len(next(iter(entries.values()))) + 1))
    texts = {name: ["" if one is None else one.strip() for one in column]
             for name, column in entries.items() if is_text(column)}  # fmt: skip
    understood, notes = understand(texts, numbers, "", wishes, like)
    columns = {name: understood[name] if name in texts else typed_column(name, column)
               for name, column in entries.items()}  # fmt: skip
    return replace(Table(columns, numbers), notes=tuple(notes))
