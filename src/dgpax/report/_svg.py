"""Small charts as inline SVG: no fonts, colours or scripts of their own, so that they follow the page's style."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ._html import Node, Tag, tag
from ._text import shown

WIDTH, HEIGHT = 360.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 54.0, 12.0, 12.0, 40.0
LONGEST_LABEL = 36


@dataclass(frozen=True)
class Axes:
    """The ranges and labels of a chart, and where values lie on it."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    x_label: str
    y_label: str

    def x(self, values) -> np.ndarray:
        return _place(values, self.x_range, LEFT, WIDTH - RIGHT)

    def y(self, values) -> np.ndarray:
        return _place(values, self.y_range, HEIGHT - BOTTOM, TOP)


def spanning(*values: np.ndarray, margin: float = 0.04) -> tuple[float, float]:
    """A range that holds all finite values, with a margin."""
    everything = np.concatenate([np.ravel(np.asarray(part, float)) for part in values])
    finite = everything[np.isfinite(everything)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    pad = margin * (high - low) or 0.5 * (abs(low) or 1.0)
    return low - pad, high + pad


def ticks(low: float, high: float, most: int = 6) -> np.ndarray:
    """At most so many round numbers between the ends: multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= rough * (1.0 - 1e-9))
    return step * np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)


def line(axes: Axes, x, y, class_: str = "line") -> Tag:
    """A line through points; it is broken where one isn't finite."""
    return tag("path", d=_path(axes.x(x), axes.y(y)), class_=class_)


def band(axes: Axes, x, low, high, class_: str = "band") -> Tag:
    """The area between two lines."""
    there = np.concatenate([axes.x(x), axes.x(x)[::-1]])
    edge = np.concatenate([axes.y(low), axes.y(high)[::-1]])
    return tag("path", d=_path(there, edge) + "Z", class_=class_)


def points(axes: Axes, x, y, class_: str = "point") -> Tag:
    """Dots, all in one path of strokes without length."""
    dots = [f"M{a:.1f} {b:.1f}h0" for a, b in zip(axes.x(x), axes.y(y), strict=True) if np.isfinite(a + b)]
    return tag("path", d="".join(dots) or "M0 0", class_=class_)


def whiskers(axes: Axes, x, low, high, class_: str = "whisker") -> Tag:
    """Upright lines from low to high."""
    ends = zip(axes.x(x), axes.y(low), axes.y(high), strict=True)
    return tag("path", d="".join(f"M{a:.1f} {b:.1f}V{c:.1f}" for a, b, c in ends if np.isfinite(a + b + c)) or "M0 0",
               class_=class_)  # fmt: skip


def bars(axes: Axes, edges, heights, class_: str = "bar") -> list[Node]:
    """The bars of a histogram, from zero."""
    left, right, top = axes.x(edges[:-1]), axes.x(edges[1:]), axes.y(heights)
    floor = float(axes.y([0.0])[0])
    return [
        tag("rect", x=a + 0.5, y=t, width=max(b - a - 1.0, 0.5), height=max(floor - t, 0.0), class_=class_)
        for a, b, t in zip(left, right, top, strict=True)
    ]


def chart(title: str, caption: str, axes: Axes, *marks: Node | Iterable[Node]) -> Tag:
    """A figure: a title, the marks on axes with a grid, and what to see."""
    drawing = tag(
        "svg", _grid(axes), *marks, _labels(axes),
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="img", aria_label=shown(title),
    )  # fmt: skip
    return tag("figure", tag("h3", shown(title)), drawing, tag("figcaption", caption))


def small_histogram(values: np.ndarray, num_bins: int = 16) -> Tag:
    """The distribution of a column, without axes."""
    finite = values[np.isfinite(values)]
    counts, _ = np.histogram(finite, bins=num_bins) if len(finite) else (np.zeros(num_bins), None)
    heights = 20.0 * counts / max(counts.max(), 1)
    shapes = [
        tag("rect", x=5.0 * i, y=20.0 - height, width=4.0, height=height, class_="bar")
        for i, height in enumerate(heights)
        if height > 0
    ]
    return tag("svg", shapes, viewBox=f"0 0 {5 * num_bins} 20", class_="small", role="img", aria_label="distribution")


def _place(values, span: tuple[float, float], start: float, end: float) -> np.ndarray:
    share = (np.asarray(values, float) - span[0]) / (span[1] - span[0])
    return start + (end - start) * np.clip(share, 0.0, 1.0)


def _path(x: np.ndarray, y: np.ndarray) -> str:
    steps, pen = [], "M"
    for a, b in zip(x, y, strict=True):
        if np.isfinite(a + b):
            steps.append(f"{pen}{a:.1f} {b:.1f}")
            pen = "L"
        else:
            pen = "M"
    return "".join(steps) or "M0 0"


def _grid(axes: Axes) -> list[Node]:
    across = [tag("line", x1=a, x2=a, y1=TOP, y2=HEIGHT - BOTTOM, class_="grid") for a in axes.x(ticks(*axes.x_range))]
    along = [tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=b, y2=b, class_="grid") for b in axes.y(ticks(*axes.y_range))]
    return [*across, *along]


def _labels(axes: Axes) -> list[Node]:
    x_ticks, y_ticks = ticks(*axes.x_range), ticks(*axes.y_range)
    below = [
        tag("text", written, x=a, y=HEIGHT - BOTTOM + 15.0, text_anchor="middle")
        for a, written in zip(axes.x(x_ticks), _written(x_ticks), strict=True)
    ]
    beside = [
        tag("text", written, x=LEFT - 6.0, y=b + 4.0, text_anchor="end")
        for b, written in zip(axes.y(y_ticks), _written(y_ticks), strict=True)
    ]
    middle, side = (LEFT + WIDTH - RIGHT) / 2.0, (TOP + HEIGHT - BOTTOM) / 2.0
    titles = [
        tag("text", shown(axes.x_label, LONGEST_LABEL), x=middle, y=HEIGHT - 6.0, text_anchor="middle", class_="label"),
        tag("text", shown(axes.y_label, LONGEST_LABEL), transform=f"translate(9 {side:g}) rotate(-90)",
            text_anchor="middle", class_="label"),
    ]  # fmt: skip
    return [*below, *beside, *titles]


def _written(values: np.ndarray) -> list[str]:
    """Tick labels short enough for the margin, with as many digits as tell them apart."""
    largest = float(np.max(np.abs(values), initial=0.0))
    step = float(np.min(np.diff(values), initial=largest or 1.0))
    if largest >= 1e5 or 0.0 < largest < 1e-3:
        texts = [f"{value:.3g}" for value in values]
    else:
        digits = min(max(0, -math.floor(math.log10(step) + 1e-9)), 5)
        texts = [f"{value:.{digits}f}" for value in values]
    return [text.replace("-", "−") for text in texts]
