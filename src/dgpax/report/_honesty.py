"""Whether stated probabilities can be believed: what was checked, against what chance does, and the word for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import beta, binom, kstest, norm

from ._check import BAD, GOOD, OPEN, Check
from ._judge import LEVELS, Classification, Regression
from ._patterns import Order, patterns
from ._text import percent, points_of

CHANCE = 0.01
"""How often chance makes a check fail on a calibrated model, all its parts together."""
TOLERANCE = 0.1
"""Honest is who isn't further off than this at any level, ..."""
DOUBT = 0.05
"""... but for this probability."""
NOTABLE = 0.05
"""Gaps below which a level isn't called wrong, however many rows there are."""
NOTABLE_RANKS = 0.12
"""The same for quantiles, which share the error of the mean that few rows to train on leave."""
GROUPS = 4
HONEST, OVERCONFIDENT, CAUTIOUS = "Honest", "Overconfident", "Cautious"
LOPSIDED, UNEVEN, UNTOLD, UNFINISHED = "Lopsided", "Uneven", "Too few rows to tell", "Unfinished"


class Honesty(NamedTuple):
    """The verdict in a word and in a sentence, and what it rests on."""

    word: str
    sentence: str
    checks: tuple[Check, ...]

    @property
    def mood(self) -> str:
        """Good, so-so or bad news."""
        if self.word == HONEST:
            return "good"
        return "bad" if self.word in (OVERCONFIDENT, LOPSIDED, UNEVEN) else "so-so"


def honesty(
    scored: Regression | Classification,
    inputs: Mapping[str, np.ndarray],
    times: np.ndarray | None = None,
    *,
    unfinished: str = "",
) -> Honesty:
    """The verdict on predictions of held-out rows.

    It is "Honest" only if no check fails and, at every level, the rows rule out (with 95% confidence) that the share of
    values inside is more than ten points off. `inputs` are the columns that surprises must not depend on, `times` the
    order in which they must not follow each other; `unfinished` says why a fit didn't come to its end.
    """
    order = Order("time" if times is not None else "order of the rows", times)
    checks = _of_numbers(scored, inputs, order) if isinstance(scored, Regression) else _of_labels(scored, inputs, order)
    ended = Check("the fit's end", unfinished or "its rule was met", "", BAD if unfinished else GOOD, UNFINISHED)
    return _verdict((*checks, ended))


def _verdict(checks: tuple[Check, ...]) -> Honesty:
    failed = [check for check in checks if check.state == BAD]
    still_open = [check for check in checks if check.state == OPEN]
    for word in (OVERCONFIDENT, CAUTIOUS, LOPSIDED, UNEVEN):
        same = [f"{check.what}: {check.found}" for check in failed if check.word == word]
        if same:
            more = f" (and {len(same) - 1} more)" if len(same) > 1 else ""
            return Honesty(word, f"{_MEANINGS[word]} The {same[0]}{more}.", checks)
    if still_open:
        worst = still_open[0]
        return Honesty(UNTOLD, f"Nothing speaks against it; still open are the {worst.what}: {worst.found}.", checks)
    if failed:
        return Honesty(UNFINISHED, "Stated probabilities come true so far; the fit didn't come to its end.", checks)
    return Honesty(HONEST, _MEANINGS[HONEST], checks)


_MEANINGS = {
    HONEST: "Stated probabilities come true, within ten points at every level, and nothing was found that surprises "
    "depend on.",
    OVERCONFIDENT: "Surer than it should be.",
    CAUTIOUS: "Less sure than it could be.",
    LOPSIDED: "Values don't fall where they were said to.",
    UNEVEN: "Right on average, but not for all rows.",
}


def _of_numbers(scored: Regression, inputs: Mapping[str, np.ndarray], order: Order) -> list[Check]:
    there = ~np.isnan(scored.ranks)
    count, ranks = int(np.sum(there.any(axis=1))), scored.ranks[there]
    levels = [_level(level, float(np.mean(np.abs(2.0 * ranks - 1.0) <= level)), count) for level in LEVELS]
    z = ndtri(np.clip(scored.ranks, 1e-6, 1.0 - 1e-6))
    return [*levels, _ranks(ranks, count), *patterns(z, inputs, order, CHANCE, UNEVEN)]


def _level(level: float, covered: float, count: int) -> Check:
    """Outside what chance does, and notably: bad. Else good only if the rows rule out more than the tolerance."""
    share = CHANCE / len(LEVELS)
    low, high = (float(edge) / count for edge in binom.interval(1.0 - share, count, level))
    inside = round(covered * count)
    least, most = bounds(inside, count)
    what, found = f"{percent(level)} intervals", f"{percent(covered)} of the values are inside"
    chance = f"{percent(low)} to {percent(high)}"
    if not low <= covered <= high and abs(covered - level) > NOTABLE:
        return Check(what, found, chance, BAD, OVERCONFIDENT if covered < level else CAUTIOUS)
    if least < level - TOLERANCE or most > level + TOLERANCE:
        off = max(level - least, most - level)
        return Check(what, f"{found}, which may be {points_of(off)} off", chance, OPEN)
    return Check(what, found, chance, GOOD)


def bounds(inside: int, count: int) -> tuple[float, float]:
    """Below and above which the true share lies with 95% confidence each   [Clopper & Pearson 1934]."""
    low = float(beta.ppf(DOUBT, inside, count - inside + 1)) if inside else 0.0
    high = float(beta.ppf(1.0 - DOUBT, inside + 1, count - inside)) if inside < count else 1.0
    return low, high


def _ranks(ranks: np.ndarray, count: int) -> Check:
    """The largest gap between the ranks' distribution and the uniform one, by Kolmogorov and Smirnov."""
    gap = float(kstest(ranks, "uniform").statistic)
    chance = float(np.sqrt(-0.5 * np.log(CHANCE / 2.0)) / np.sqrt(count))
    bad = gap > max(chance, NOTABLE_RANKS)
    found = f"quantiles are up to {points_of(gap)} off"
    return Check("ranks of the values (PIT)", found, f"up to {points_of(chance)}", BAD if bad else GOOD, LOPSIDED)


def _of_labels(scored: Classification, inputs: Mapping[str, np.ndarray], order: Order) -> list[Check]:
    sure = scored.probabilities.max(axis=1)
    right = (scored.probabilities.argmax(axis=1) == scored.labels).astype(float)
    groups = [group for group in np.array_split(np.argsort(sure, kind="stable"), GROUPS) if len(group)]
    checks = [_sureness("rows as a whole", sure, right, must_be_told=True)]
    for number, group in enumerate(groups):
        what = ("the least sure rows", "less sure rows", "surer rows", "the surest rows")[number]
        checks.append(_sureness(what, sure[group], right[group]))
    return [*checks, *patterns((right - sure)[:, None], inputs, order, CHANCE, UNEVEN, numbers=False)]


def _sureness(what: str, sure: np.ndarray, right: np.ndarray, *, must_be_told: bool = False) -> Check:
    """How sure it was on average, and how often it was right."""
    count, stated, share = len(sure), float(np.mean(sure)), float(np.mean(right))
    width = float(norm.isf(CHANCE / (2 * (GROUPS + 1))) * np.sqrt(np.sum(sure * (1.0 - sure))) / count)
    low, high = max(0.0, stated - width), min(1.0, stated + width)
    found, chance = f"{percent(stated)} sure and {percent(share)} right", f"{percent(low)} to {percent(high)} right"
    if not low <= share <= high and abs(share - stated) > NOTABLE:
        return Check(what, found, chance, BAD, OVERCONFIDENT if share < stated else CAUTIOUS)
    least, most = bounds(round(share * count), count)
    if must_be_told and (least < stated - TOLERANCE or most > stated + TOLERANCE):
        return Check(what, f"{found}, which may be {points_of(max(stated - least, most - stated))} off", chance, OPEN)
    return Check(what, found, chance, GOOD)
