"""What a reader wants to know first, each with how sure it is."""

from __future__ import annotations

from typing import NamedTuple

from ..fits import FitReport
from ._check import BAD, GOOD, OPEN
from ._honesty import UNFINISHED, Honesty
from ._html import Tag, section, table, tag
from ._text import percent

STATES = {GOOD: "✓", BAD: "✗", OPEN: "open"}


class Finding(NamedTuple):
    """A number in large type, a sentence, and whether it is good news ("good", "so-so", "bad" or "")."""

    figure: str
    sentence: str
    mood: str = ""


def cards(findings: list[Finding]) -> Tag:
    """The findings side by side."""
    return tag(
        "div",
        [tag("div", tag("b", f.figure), tag("span", f.sentence), class_=f"card {f.mood}".rstrip()) for f in findings],
        class_="cards",
    )


def about_honesty(honesty: Honesty, unfinished: FitReport | None) -> list[Finding]:
    """Whether stated probabilities come true, and a warning about a fit that its limits ended."""
    if unfinished is None:
        return [Finding(honesty.word, honesty.sentence, honesty.mood)]
    if honesty.word == UNFINISHED:
        return [Finding(honesty.word, f"Stated probabilities come true so far. {unfinished.advice}", "so-so")]
    return [Finding(honesty.word, honesty.sentence, honesty.mood), Finding(UNFINISHED, unfinished.advice, "so-so")]


def checks_section(honesty: Honesty) -> Tag:
    """What the verdict rests on."""
    rows = [(STATES[check.state], check.what, check.found, check.chance) for check in honesty.checks]
    return section(
        "checks",
        "What the verdict rests on",
        tag("p", "“By chance” is where a calibrated model would be, 99 times in a hundred. "
                 "“Open” means that there are too few rows to rule out that it is ten points off."),
        table(("", "what", "found", "by chance"), rows, wide=(2,), numbers=4),
    )  # fmt: skip


def about_error(smse: float, rmse: str) -> Finding:
    """How much better than the mean the predictions are."""
    figure = f"{rmse} typical error"
    if not smse < 1.0:
        return Finding(figure, "No better than always predicting the mean: the inputs say little here.", "bad")
    mood = "good" if smse < 0.5 else "so-so"
    return Finding(figure, f"{percent(1.0 - smse)} of the variation of held-out values is explained (R²).", mood)
