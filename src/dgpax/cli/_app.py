"""The application, where it prints, and how it fails."""

from __future__ import annotations

import json
import re
import sys
import warnings
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .. import settings
from ..errors import DgpaxError, DgpaxWarning

app = typer.Typer(
    help="Deep Gaussian processes: calibrated predictions from a table. `dgpax fit` alone runs on data in the package.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
console = Console()
EXIT_ERROR = 1
EXIT_INTERRUPTED = 130


@app.callback()
def before_every_command(
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Keep compiled programs for the next run, or don't.")
    ] = True,
) -> None:
    """What the options before the command's name say. JAX isn't there yet: a command imports what it needs."""
    if cache:
        settings.when_jax_is_imported(settings.cache_compilations)


def say(text: object, *, quiet: bool = False, style: str = "") -> None:
    """Print text as it is, brackets and all; nothing if `quiet`, as with --json."""
    if not quiet:
        console.print(Text(text, style) if isinstance(text, str) else text, soft_wrap=isinstance(text, str))


def print_json(value: Any) -> None:
    """JSON for scripts, on stdout; what isn't finite becomes null."""
    typer.echo(json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, indent=2))


def listing(head: tuple[str, ...], rows: list[tuple[str, ...]], title: str | None = None) -> Table:
    """A table for the terminal; its cells are text, never markup."""
    table = Table(*head, title=title)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def metric_table(scores: dict[str, float]) -> Table:
    """Scores on held-out rows."""
    rows = [(name, f"{value:.4g}") for name, value in scores.items()]
    return listing(("metric", "held-out rows"), rows, "How good, and how honest")


def file_stem(text: str) -> str:
    """A name that any file system takes."""
    return re.sub(r"[^\w.-]+", "-", text, flags=re.ASCII).strip("-.")[:60] or "table"


def main() -> None:
    """Run the command line; an error of ours is one sentence and exit code 1, a wrong command exit code 2."""
    warnings.simplefilter("always", DgpaxWarning)
    warnings.showwarning = _show_warning
    try:
        app()
    except (DgpaxError, OSError) as error:
        _complain("error:", "red", str(error))
        sys.exit(EXIT_ERROR)
    except KeyboardInterrupt:
        _complain("interrupted", "red", "")
        sys.exit(EXIT_INTERRUPTED)


def _show_warning(message, category, filename, lineno, file=None, line=None) -> None:
    _complain("note:", "yellow", str(message))


def _complain(word: str, style: str, text: str) -> None:
    Console(stderr=True).print(Text.assemble((word, style), " ", text), soft_wrap=True)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
