"""Options that several commands share: how a file is to be read."""

from __future__ import annotations

from typing import Annotated

import typer

Decimal = Annotated[str | None, typer.Option(help="The decimal mark, '.' or ','. [default: as the file shows]")]
Dates = Annotated[str | None, typer.Option(help="day-first or month-first. [default: as the file shows]")]
Gap = Annotated[
    list[str] | None, typer.Option(help="A further mark of a gap, such as -999; may be given several times.")
]
Category = Annotated[
    list[str] | None, typer.Option(help="A column to be taken as text, whatever it holds; may be given several times.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
