"""Text of strangers, made fit to be shown."""

from __future__ import annotations

import unicodedata

import numpy as np

LONGEST = 60
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories that are invisible, reorder what stands beside them, or can't be written to a file."""


def shown(text: object, longest: int = LONGEST) -> str:
    """What a name or value is shown as: on one line, invisible characters spelt out, long text cut visibly."""
    visible = "".join(_visible(character) for character in str(text)[: 4 * longest])
    length = len(str(text))
    if length <= longest and len(visible) <= longest:
        return visible
    return f"{visible[: max(longest - 20, longest // 2)]}… ({length:,} characters)"


def number(value: float) -> str:
    """Four significant digits, without an exponent where a person wouldn't write one."""
    value = float(value)
    if not np.isfinite(value):
        return "none" if np.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == 0.0 or 1e-3 <= abs(value) < 1e6:
        text = f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    else:
        text = f"{value:.3g}"
    return text.replace("-", "−")


def percent(share: float) -> str:
    """A share of 1 as a percentage; more digits near 0 and 1, where they matter."""
    digits = 1 if 0.01 <= share <= 0.99 else 2
    return f"{100.0 * share:.{digits}f}".rstrip("0").rstrip(".") + "%"


def points_of(share: float) -> str:
    """A difference between two percentages."""
    return f"{100.0 * share:.0f} points"


def _visible(character: str) -> str:
    if character in "\n\t":
        return " "
    return f"\\u{ord(character):04x}" if unicodedata.category(character) in HIDDEN else character
