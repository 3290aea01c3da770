"""What a reader wants to know first, each with how sure it is."""

from __future__ import annotations

from typing import NamedTuple

from ..fits import FitReport
from ..metrics import chance_band
from ._html import Tag, tag
from ._text import percent

CHANCE = 0.99
"""How often a calibrated model would be called calibrated."""


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


def about_coverage(covered: float, num_targets: int, level: float) -> Finding:
    """Whether the share of targets inside their intervals is what it should be, given how few there are."""
    low, high = (float(edge) for edge in chance_band(level, num_targets, CHANCE))
    figure = f"{percent(covered)} inside"
    expected = f"the {percent(level)} intervals ({percent(low)} to {percent(high)} is chance)"
    if covered < low:
        return Finding(figure, f"Overconfident: too few held-out values lie in {expected}.", "bad")
    if covered > high:
        return Finding(figure, f"Cautious: more held-out values than stated lie in {expected}.", "so-so")
    return Finding(figure, f"Honest: as many held-out values as stated lie in {expected}.", "good")


def about_end(report: FitReport) -> list[Finding]:
    """A warning about a fit that its limits ended."""
    return [Finding("Not finished", report.advice, "so-so")] if report.unfinished else []


def about_error(smse: float, rmse: str) -> Finding:
    """How much better than the mean the predictions are."""
    figure = f"{rmse} typical error"
    if not smse < 1.0:
        return Finding(figure, "No better than always predicting the mean: the inputs say little here.", "bad")
    mood = "good" if smse < 0.5 else "so-so"
    return Finding(figure, f"{percent(1.0 - smse)} of the variation of held-out values is explained (R²).", mood)
