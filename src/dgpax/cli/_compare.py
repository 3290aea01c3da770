"""`dgpax compare`: does a deep GP pay?"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from ._app import app, console, listing, print_json, say
from ._options import Category, Dates, Decimal, Gap, Json, Seed

if TYPE_CHECKING:
    from ._methods import Scored

DEEP = "deep GP"
EXACT_UP_TO = 2000
"""Rows for which the exact GP is quick enough."""
HEAD = ("method", "RMSE", "NLPD", "CRPS", "90% coverage", "width", "seconds")
NOTE = (
    "Smaller is better but for coverage, which should be 0.9. Gradient boosting has quantiles only: its NLPD is that "
    "of a normal with its 5% and 95% quantiles, its CRPS from ten of them."
)


@app.command("compare")
def compare_command(
    source: Annotated[str, typer.Argument(help="A CSV or Parquet file, or a named dataset.")] = "energy",
    target: Annotated[str | None, typer.Option(help="The column to predict. [default: the last]")] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="A column to leave out; may be given several times.")] = None,
    test_fraction: Annotated[float, typer.Option(help="Rows of a file to hold out.")] = 0.2,
    hold_out: Annotated[str, typer.Option(help="Hold out rows at random, or the last ones in time.")] = "random",
    decimal: Decimal = None,
    dates: Dates = None,
    gap: Gap = None,
    category: Category = None,
    split: Annotated[int, typer.Option(min=0, help="Which standard split of a named dataset to hold out.")] = 0,
    max_seconds: Annotated[float, typer.Option(min=0.1, help="Training time that a GP may take.")] = 75.0,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Compare a deep GP with one-layer GPs, gradient boosting and the mean, on held-out rows of numbers.

    Examples: dgpax compare energy · dgpax compare houses.csv --target price --max-seconds 30
    """
    from . import _methods
    from ._source import Choice, Wishes, read_source

    wishes = Wishes(decimal, dates, tuple(gap or ()), tuple(category or ()))
    found = read_source(
        source, Choice(target, "regression", ignore or (), test_fraction, split, seed, wishes, hold_out)
    )
    if found.classes:
        raise InputError(f"compare is for targets that are numbers; {found.target!r} has labels.")
    methods = [_methods.deep_gp, _methods.sparse_gp, _methods.gradient_boosting, _methods.the_mean]
    if found.train.num_rows <= EXACT_UP_TO:
        methods.insert(2, _methods.exact_gp)
    say(f"{found.name}, {found.note}: {found.train.num_rows} rows to train, {found.test.num_rows} held out", quiet=json)
    results = []
    for method in methods:
        with nullcontext() if json else console.status(f"{method.__name__.replace('_', ' ')} …"):
            results.append(method(found, max_seconds, seed))
    conclusion = verdict(results)
    if json:
        print_json({"methods": {one.method: one.numbers() for one in results}, "verdict": conclusion})
        return
    say(listing(HEAD, [_row(one) for one in results]))
    say(NOTE, style="dim")
    say(conclusion, style="bold")


def verdict(results: list[Scored]) -> str:
    """Whether the deep GP pays, in one sentence: its log density against the best one-layer GP's, row by row."""
    import numpy as np

    deep = next(one for one in results if one.method == DEEP)
    shallow = min((one for one in results if one.method.endswith("GP") and one is not deep), key=lambda one: one.nlpd)
    gain = deep.log_densities - shallow.log_densities
    mean, error = float(np.mean(gain)), float(np.std(gain) / np.sqrt(len(gain)))
    by = f"its log density a row is {abs(mean):.2f} ± {error:.2f} {'higher' if mean > 0 else 'lower'} than the "
    by += f"{shallow.method}'s, in {deep.seconds:.0f} instead of {shallow.seconds:.0f} seconds"
    if mean > 2.0 * error:
        sentence = f"A deep GP pays on these rows: {by}"
    elif mean < -2.0 * error:
        sentence = f"A deep GP doesn't pay on these rows: {by}"
    else:
        sentence = f"A deep GP doesn't clearly pay on these rows: {by}"
    best = min(results, key=lambda one: one.crps)
    better = best.method not in (deep.method, shallow.method)
    return f"{sentence}{f'; the best by CRPS is {best.method}' if better else ''}."


def _row(one: Scored) -> tuple[str, ...]:
    values = (one.rmse, one.nlpd, one.crps, one.coverage, one.width)
    return (one.method, *(f"{value:.3g}" for value in values), f"{one.seconds:.1f}")
