"""How good, and how honest, predictions of classes are on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..metrics import accuracy, brier, log_loss
from ._html import Tag, name, section, table, tag
from ._judge import Classification
from ._svg import Axes, bars, chart, line, points, whiskers
from ._text import number, percent
from ._verdict import Finding

MOST_CLASSES = 12


def findings(judged: Classification) -> list[Finding]:
    """How often the most probable class is the right one."""
    labels = judged.labels
    right, usual = judged.scores["accuracy"], float(np.bincount(labels).max() / len(labels))
    good = right > usual
    sentence = f"of the held-out rows; always naming the most frequent class is right for {percent(usual)}."
    return [Finding(f"{percent(right)} right", sentence, "good" if good else "bad")]


def sections(judged: Classification, classes: Sequence[str], how: str) -> list[Tag]:
    """Metrics, the confusion matrix, and whether probabilities come true."""
    labels, p = judged.labels, judged.probabilities
    classes = list(classes) or [str(i) for i in range(p.shape[1])]
    base = np.tile(np.bincount(labels, minlength=p.shape[1]) / len(labels), (len(labels), 1))
    scores = {
        "accuracy": (accuracy, "share of rows whose most probable class is the right one"),
        "log_loss": (log_loss, "−log probability of the right class, on average; smaller is better"),
        "brier": (brier, "squared error of the probabilities (Brier score); smaller is better"),
    }
    rows = [
        (label, number(judged.scores[label]), number(float(score(labels, base))), meaning)
        for label, (score, meaning) in scores.items()
    ]
    return [
        section(
            "metrics",
            "On held-out rows",
            tag("p", f"{len(labels):,} rows. {how}"),
            table(("metric", "this model", "class frequencies alone", "meaning"), rows, wide=(3,)),
            tag("h3", "Which class was taken for which"),
            confusion(labels, p, classes),
        ),
        section(
            "calibration",
            "Do stated probabilities come true?",
            tag("div", reliability(labels, p), confidences(labels, p), class_="figures"),
        ),
    ]


def confusion(labels: np.ndarray, p: np.ndarray, classes: Sequence[str]) -> Tag:
    """Rows are what was observed, columns what was predicted."""
    size = len(classes)
    counts = np.zeros((size, size), int)
    np.add.at(counts, (labels, p.argmax(axis=1)), 1)
    kept = np.argsort(-counts.sum(axis=1), kind="stable")[:MOST_CLASSES]
    kept.sort()
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    head = tag("tr", tag("th", "observed ↓ predicted →"), [tag("th", name(classes[j])) for j in kept])
    rows = [
        tag("tr", tag("th", name(classes[i])),
            [tag("td", f"{counts[i, j]:,}", class_=f"heat heat-{int(np.ceil(4 * share[i, j]))}") for j in kept])
        for i in kept
    ]  # fmt: skip
    note = tag("p", f"The {len(kept)} most frequent of {size} classes.", class_="muted") if size > len(kept) else None
    return tag("div", tag("table", tag("thead", head), tag("tbody", rows), class_="confusion"), note)


def reliability(labels: np.ndarray, p: np.ndarray) -> Tag:
    """How often the predicted class was right, by how sure the model was."""
    sure, right = p.max(axis=1), p.argmax(axis=1) == labels
    parts = [part for part in np.array_split(np.argsort(sure, kind="stable"), min(10, len(sure))) if len(part)]
    stated = np.array([sure[part].mean() for part in parts])
    found = np.array([right[part].mean() for part in parts])
    sizes = np.array([len(part) for part in parts])
    error = 1.96 * np.sqrt(np.maximum(found * (1.0 - found), 0.25 / sizes) / sizes)
    axes = Axes((1.0 / p.shape[1], 1.0), (0.0, 1.0), "how sure it was", "how often it was right")
    return chart(
        "Reliability",
        "Held-out rows in ten groups, from least to most sure. On the diagonal, probabilities are right; lines are "
        "about 95% of chance.",
        axes,
        line(axes, [1.0 / p.shape[1], 1], [1.0 / p.shape[1], 1], "diagonal"),
        whiskers(axes, stated, found - error, found + error),
        points(axes, stated, found),
    )  # fmt: skip


def confidences(labels: np.ndarray, p: np.ndarray) -> Tag:
    """The probability given to the class that was observed."""
    counts, edges = np.histogram(p[np.arange(len(labels)), labels], bins=20, range=(0.0, 1.0))
    axes = Axes((0.0, 1.0), (0.0, 1.05 * float(counts.max())), "probability of the observed class", "held-out rows")
    return chart(
        "What happened, and how likely it was said to be",
        "Towards the right, the model expected what it saw; bars on the left are surprises.",
        axes,
        bars(axes, edges, counts),
    )
