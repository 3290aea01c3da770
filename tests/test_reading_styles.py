"""Tables of known values, written in the ways of many programs and people, are read back or doubted aloud."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from dgpax.data import read_table
from dgpax.errors import InputError

DATES = ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y-%m-%d", "%d-%m-%Y", "%Y%m%d", "%d %b %Y", "%Y-%m-%d %H:%M")
ABOVE = ("", "Report of sales\n\n", "# written by hand\n# twice\n")
GAPS = ("", "NA", "-", "n/a", "?")


@dataclass(frozen=True)
class Style:
    """How a program or a person writes a table."""

    separator: str
    decimal: str
    thousands: str
    dates: str
    encoding: str
    above: str
    gap: str
    digits: int
    unit: str
    total: bool
    trailing: bool

    @classmethod
    def of(cls, rng: random.Random) -> Style:
        separator = rng.choice(",;\t|")
        decimal = rng.choice(".," if separator != "," else ".")
        thousands = rng.choice(["", "", "'", " ", *([","] if decimal == "." else ["."])])
        encoding = rng.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252"])
        return cls(separator, decimal, thousands, rng.choice(DATES), encoding, rng.choice(ABOVE), rng.choice(GAPS),
                   rng.choice([0, 1, 2, 3, 3]), rng.choice(["", "", " €", "%"]), rng.random() < 0.3,
                   rng.random() < 0.2)  # fmt: skip

    def number(self, value: float | None) -> str:
        if value is None:
            return self.gap
        plain = f"{value:,.{self.digits}f}"
        return plain.replace(",", "\0").replace(".", self.decimal).replace("\0", self.thousands) + self.unit

    def date(self, value: datetime.datetime | None) -> str:
        return self.gap if value is None else value.strftime(self.dates)

    def cell(self, text: str) -> str:
        return f'"{text}"' if self.separator in text or "\n" in text else text

    def write(self, columns: dict[str, list[str]]) -> bytes:
        rows = [list(columns), *(list(row) for row in zip(*columns.values(), strict=True))]
        rows += [["Total", *["5"] * (len(columns) - 1)]] if self.total else []
        end = self.separator if self.trailing else ""
        lines = [self.separator.join(map(self.cell, row)) + end for row in rows]
        return (self.above + "\n".join(lines) + "\n").encode(self.encoding)


def gappy(rng: random.Random, make: Callable[[], object], rows: int) -> list:
    return [None if rng.random() < 0.15 and row > 1 else make() for row in range(rows)]


@pytest.mark.parametrize("seed", range(300))
def test_what_was_written_is_read_or_doubted(seed, tmp_path):
    rng = random.Random(seed)  # noqa: S311
    style, rows = Style.of(rng), rng.randrange(4, 40)
    scale = rng.choice([1.0, 100.0, 20_000.0])
    numbers = gappy(rng, lambda: round(rng.uniform(-scale, scale), style.digits), rows)
    start = datetime.datetime(1995, 1, 1)
    days = gappy(rng, lambda: start + datetime.timedelta(days=rng.randrange(10_000)), rows)
    words = gappy(rng, lambda: rng.choice(["Köln", "Graz, Austria", "Wien; Austria"]), rows)
    words = [
        word or (None if day or number is not None else "Linz")
        for word, day, number in zip(words, days, numbers, strict=True)
    ]
    columns = {
        "größe": [style.number(value) for value in numbers],
        "day": [style.date(value) for value in days],
        "place": [style.gap if word is None else word for word in words],
    }
    order = rng.sample(list(columns), len(columns))
    path = tmp_path / "t.csv"
    path.write_bytes(style.write({name: columns[name] for name in order}))
    try:
        table = read_table(path)
        found = table.values()
    except InputError as error:
        assert "line" in str(error), style
        return
    assert list(found) == order and table.num_rows == rows, (style, table.notes)
    wanted = np.array([np.nan if value is None else value for value in numbers])
    doubts = " ".join(table.notes)
    if not _same(found["größe"], wanted):
        assert "'größe'" in doubts and "--decimal" in doubts, (style, found, doubts)
    if found["day"].tolist() != days:
        assert "'day'" in doubts and "--dates" in doubts, (style, found["day"], days)
    assert found["place"].tolist() == words, style


def _same(found: np.ndarray, wanted: np.ndarray) -> bool:
    return found.dtype.kind == "f" and np.allclose(found, wanted, equal_nan=True)
