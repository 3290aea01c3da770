"""Draw docs/images/bounds.png from the newest result of `benchmarks.bounds`: `python docs/make_bounds.py`."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "benchmarks" / "results"
IMAGE = DOCS / "images" / "bounds.png"
COLOURS = {"adam": "C1", "natural": "C0"}
LABELS = {"adam": "Adam", "natural": "natural gradients"}
HIDDEN_SHARE = 0.05
"""The first steps, where the bound rises from far below, would hide the rest."""


def draw(panel: Axes, curves: dict[str, list[dict]], against: str) -> None:
    """Both curves with the range over seeds, and the level at which Adam ends."""
    for name, points in curves.items():
        x, low, high = ([point[key] for point in points] for key in (against, "lowest", "highest"))
        panel.fill_between(x, low, high, color=COLOURS[name], alpha=0.25, lw=0)
        panel.plot(x, [point["bound"] for point in points], color=COLOURS[name], label=LABELS[name])
    level = curves["adam"][-1]["bound"]
    panel.axhline(level, color="0.4", lw=0.8, ls="--", label="Adam after 10,000 steps")
    shown = [point for points in curves.values() for point in points[int(HIDDEN_SHARE * len(points)) :]]
    top, bottom = max(point["highest"] for point in shown), min(point["bound"] for point in shown)
    panel.set(xlabel=against, ylim=(max(bottom, level - 4 * abs(top - level) - 400), top + 40))


def main() -> None:
    contents = [json.loads(path.read_text("utf-8")) for path in RESULTS.glob("bounds-*.json")]
    everything = max(contents, key=lambda content: content["date"])["records"]
    records = [record for record in everything if record["kind"] == "curve"]
    seeds = {(r["dataset"], r["by"]): r["seeds"] for r in everything if r["kind"] == "stability"}
    tasks = list(dict.fromkeys((record["dataset"], record["layers"]) for record in records))
    figure, axes = plt.subplots(2, len(tasks), figsize=(3.6 * len(tasks), 5.6), layout="constrained", squeeze=False)
    for column, (dataset, layers) in zip(axes.T, tasks, strict=True):
        of_task = [record for record in records if record["dataset"] == dataset]
        curves = {name: [record for record in of_task if record["by"] == name] for name in LABELS}
        for panel, against in zip(column, ("step", "seconds"), strict=True):
            draw(panel, curves, against)
        column[0].set_title(f"{dataset}, {layers} layers")
        column[1].set_xlabel(f"seconds, {seeds[dataset, 'adam']} fits by Adam, {seeds[dataset, 'natural']} by natural")
    for row in axes:
        row[0].set_ylabel("ELBO")
    axes[0, 0].legend(loc="lower right", frameon=False, fontsize="small")
    figure.savefig(IMAGE, dpi=120)


if __name__ == "__main__":
    main()
