"""The lines below the names: as many cells as names, without sums, repeated names and remarks at the end."""

from __future__ import annotations

import re
from collections import Counter

from ...errors import InputError
from ._gaps import is_gap, is_gap_among_numbers
from ._head import Sheet
from ._lines import Line, has_values, is_value
from ._words import lines_named, on_one_line, quoted, sentence

MOST_BELOW = 10
_TOTALS = """total totals sum subtotal average mean avg summe gesamt gesamtsumme insgesamt durchschnitt mittelwert
totale somme moyenne suma media totaal"""
TOTALS = frozenset(_TOTALS.split()) | {"grand total", "overall total", "total général", "total general"}
"""What a last row may call itself that holds sums or means of the others, in lower case."""


def with_body(sheet: Sheet, where: str, separator: str) -> Sheet:
    """Every row with as many cells as there are names; what is no row is left out with a note."""
    sheet = _without_remarks(sheet)
    sheet = _as_wide_as_names(sheet, where, separator)
    sheet = _without_repeated_names(sheet)
    sheet = _without_totals(_without_units(sheet))
    if not sheet.rows:
        raise InputError(
            f"{where}: line {sheet.line} names {len(sheet.names)} columns, and there are no rows below it. Is this the "
            "right file, and is its first line the names?"
        )
    return _with_names(sheet, where)


def _without_remarks(sheet: Sheet) -> Sheet:
    """Without single cells of text at the end, such as the source of the data."""
    rows, gone = sheet.rows, []
    while len(sheet.names) > 1 and len(rows) > 1 and len(gone) < MOST_BELOW:
        last = rows[-1]
        lonely = last.filled == 1 and len(last.cells) < len(sheet.names)
        if not (lonely and any(map(str.isalpha, "".join(last.cells))) and not has_values(last)):
            break
        rows, gone = rows[:-1], [last, *gone]
    return _left_out(sheet._replace(rows=rows), gone, "below the table")


def _as_wide_as_names(sheet: Sheet, where: str, separator: str) -> Sheet:
    names, width = sheet.names, len(sheet.names)
    widest = max((len(row.cells) for row in sheet.rows), default=width)
    if widest < width and not any(names[widest:]):
        note = f"Line {sheet.line} ends with a separator too many; it is left out."
        return _as_wide_as_names(sheet._replace(names=names[:widest], notes=(*sheet.notes, note)), where, separator)
    wider = [row for row in sheet.rows if len(row.cells) > width]
    notes = list(sheet.notes)
    if wider and all(not any(row.cells[width:]) for row in wider):
        if len(wider) == len(sheet.rows):
            notes.append(f"The lines end with a separator too many, as line {wider[0].number} does; it is left out.")
    elif wider and len(wider) == len(sheet.rows) and _begin_with_row_names(sheet, separator):
        names = ["", *names]
        notes.append(f"Line {sheet.line} has no name for the first column, which names the rows.")
        width += 1
    rows = _cut(sheet.rows, width) if wider else sheet.rows
    for row in rows:
        if len(row.cells) != width:
            raise InputError(_uneven(row, sheet, where, separator))
    return sheet._replace(names=names, rows=rows, notes=tuple(notes))


def _begin_with_row_names(sheet: Sheet, separator: str) -> bool:
    """As R writes them: one cell more than names, the first a word, or in files without decimal commas a number."""
    firsts = [row.cells[0] for row in sheet.rows]
    one_more = all(len(row.cells) == len(sheet.names) + 1 for row in sheet.rows)
    return one_more and len(set(firsts)) == len(firsts) and (separator != "," or not any(map(is_value, firsts)))


def _uneven(row: Line, sheet: Sheet, where: str, separator: str) -> str:
    count, width = len(row.cells), len(sheet.names)
    comma = separator == "," and count > width and sum(map(is_value, row.cells)) > width // 2
    advice = (
        "If commas are the decimal marks, separate cells by semicolons or put numbers in quotes."
        if comma
        else "Mend this line; a separator within a cell needs quotes around the cell."
    )
    cells = f"{count} cell{'s' * (count != 1)}"
    names = f"line {sheet.line} names {width} columns" if sheet.line else f"the first line has {width}"
    return f"{where}: line {row.number} has {cells}, and {names}: {on_one_line(row.cells)}. {advice}"


def _without_repeated_names(sheet: Sheet) -> Sheet:
    again = [row for row in sheet.rows if row.cells == sheet.names and sheet.line]
    kept = [row for row in sheet.rows if row.cells != sheet.names or not sheet.line]
    return _left_out(sheet._replace(rows=kept), again, "that repeats the names")


def _without_units(sheet: Sheet) -> Sheet:
    """Without a line of units: it has words above all the columns of values, and above some at least."""
    if not sheet.line or len(sheet.rows) < 3 or any(map(is_value, sheet.rows[0].cells)):
        return sheet
    first, others = sheet.rows[0], sheet.rows[1:]
    above = []
    for index, cell in enumerate(first.cells):
        below = [row.cells[index] for row in others if not is_gap(row.cells[index])]
        if below and all(is_value(entry) or is_gap_among_numbers(entry) for entry in below):
            above.append(cell)
    words = [cell for cell in above if not is_gap(cell) and not is_gap_among_numbers(cell)]
    if len(above) < 2 or 2 * len(words) < len(above):
        return sheet
    return _left_out(sheet._replace(rows=others), [first], "between names and values")


def _without_totals(sheet: Sheet) -> Sheet:
    """Without last rows that say that they are a sum or a mean, where no other row says so."""
    rows, gone, notes = sheet.rows, [], sheet.notes
    while len(rows) > 1 and (label := _label_of_total(rows[-1])) is not None:
        index = rows[-1].cells.index(label)
        if any(row.cells[index] == label for row in rows[:-1]):
            break
        rows, gone = rows[:-1], [rows[-1], *gone]
    kept = [row for row in rows if _label_of_total(row) is not None]
    if not gone and rows and rows[-1].cells[0].lower().startswith(("total ", "sum ", "summe ", "gesamt ")):
        kept = [*kept, rows[-1]]
    if len(kept) == 1:
        line = f"line {kept[0].number}: {on_one_line(kept[0].cells)}"
        which = "The last row" if kept[0] is rows[-1] else "A row"
        notes = (*notes, f"{which} is kept, though it may hold sums: {line}. If it does, delete it.")
    return _left_out(sheet._replace(rows=rows, notes=notes), gone, "with sums or means")


def _label_of_total(row: Line) -> str | None:
    return next((cell for cell in row.cells if cell.lower().rstrip(":") in TOTALS), None)


def _with_names(sheet: Sheet, where: str) -> Sheet:
    """Every column with a name of its own; trailing columns without a name and without values are left out."""
    names, width = [re.sub(r"\s*[\r\n]\s*", " ", name) for name in sheet.names], len(sheet.names)
    while width > 1 and not names[width - 1] and not any(row.cells[width - 1] for row in sheet.rows):
        width -= 1
    notes = list(sheet.notes)
    if width < len(names):
        notes.append(f"Line {sheet.line} ends with a separator too many; the empty column after it is left out.")
    names = [name or f"column {index + 1}" for index, name in enumerate(names[:width])]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        places = [str(index + 1) for index, name in enumerate(names) if name == repeated[0]]
        raise InputError(
            f"{where}: line {sheet.line} gives several columns the same name: {quoted(repeated)}; "
            f"{repeated[0][:60]!r} names columns {' and '.join(places[:2])}. Rename them."
        )
    rows = _cut(sheet.rows, width) if width < len(sheet.names) else sheet.rows
    return sheet._replace(names=names, rows=rows, notes=tuple(notes))


def _cut(rows: list[Line], width: int) -> list[Line]:
    """Without empty cells beyond this width."""
    return [row if any(row.cells[width:]) else row._replace(cells=row.cells[:width]) for row in rows]


def _left_out(sheet: Sheet, gone: list[Line], which: str) -> Sheet:
    if not gone:
        return sheet
    lines = sentence(lines_named([row.number for row in gone]))
    return sheet._replace(notes=(*sheet.notes, f"{lines} {which} left out: {on_one_line(gone[0].cells)}."))
