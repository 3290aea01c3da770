"""Draw docs/images/star_time.png and star_calibration.png from the newest result files: `python docs/make_star.py`."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "benchmarks" / "results"
COLOURS = {"SGP": "0.45", "mean-field": "C1", "stripes-and-arrow": "C0", "fully-coupled": "C2"}
SIZES = {"inducing": "inducing points", "layers": "layers", "width": "width of the inner layers"}


def newest(part: str) -> list[dict]:
    """The records of the newest file of a part."""
    contents = [json.loads(path.read_text("utf-8")) for path in RESULTS.glob(f"{part}-*.json")]
    return max(contents, key=lambda content: content["date"])["records"]


def draw_time(records: list[dict]) -> None:
    """Milliseconds of a step against each of the sizes, on logarithmic axes; the slopes are in the legends."""
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.6), layout="constrained", sharey=True)
    for panel, (what, label) in zip(axes, SIZES.items(), strict=True):
        of_size = [record for record in records if record["what"] == what]
        slopes = {record["posterior"]: record["exponent"] for record in of_size if record["kind"] == "exponent"}
        for posterior, slope in slopes.items():
            points = [record for record in of_size if record["kind"] == "growth" and record["posterior"] == posterior]
            sizes, times = zip(*((point["size"], point["milliseconds"]) for point in points), strict=True)
            panel.loglog(sizes, times, "o-", color=COLOURS[posterior], label=f"{posterior}, exponent {slope:.1f}")
        panel.set_xticks(sizes, [str(size) for size in sizes], minor=False)
        panel.minorticks_off()
        panel.set_xlabel(label)
        panel.legend(frameon=False, fontsize="small")
    axes[0].set_ylabel("milliseconds of a step")
    figure.savefig(DOCS / "images" / "star_time.png", dpi=120)


def draw_calibration(records: list[dict]) -> None:
    """Predicted standard deviation against the distance to the data, and errors against predicted variances."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for model in dict.fromkeys(record["model"] for record in records):
        own = [record for record in records if record["model"] == model]
        for panel, kind, x, y in (
            (left, "distance", "distance", "deviation"),
            (right, "variance", "variance", "error"),
        ):
            points = [(record[x], record[y]) for record in own if record["kind"] == kind]
            panel.plot(*zip(*points, strict=True), "o-", color=COLOURS[model], label=model)
    limits = [
        value for record in records if record["kind"] == "variance" for value in (record["variance"], record["error"])
    ]
    right.plot([min(limits), max(limits)], [min(limits), max(limits)], color="0.4", ls="--", lw=0.8, label="calibrated")
    right.set(xscale="log", yscale="log", xlabel="mean predicted variance", ylabel="mean squared error")
    for axis in (right.xaxis, right.yaxis):
        axis.set_minor_formatter(NullFormatter())
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FormatStrFormatter("%g"))
    left.set(xlabel="distance to the nearest training row", ylabel="predicted standard deviation")
    right.legend(frameon=False, fontsize="small")
    figure.savefig(DOCS / "images" / "star_calibration.png", dpi=120)


def main() -> None:
    draw_time(newest("star-growth"))
    draw_calibration(newest("star_studies-calibration"))


if __name__ == "__main__":
    main()
