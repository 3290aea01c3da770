"""`dgpax datasets` and `dgpax version`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import __version__
from ._app import app, listing, print_json, say


@app.command()
def datasets(json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False) -> None:
    """List the named datasets, and which of them ship with the package.

    Examples: dgpax datasets · dgpax datasets --json
    """
    from .. import data

    if json:
        print_json([row._asdict() for row in data.catalogue()])
        return
    rows = [
        (row.name, str(row.num_rows), str(row.num_inputs), row.task, "yes" if row.shipped else "", row.licence)
        for row in data.catalogue()
    ]
    say(listing(("name", "rows", "columns", "task", "shipped", "licence"), rows))


@app.command()
def version() -> None:
    """Print the version."""
    say(__version__)
