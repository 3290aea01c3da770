"""Stripes-and-arrow against the mean field, from the files of `star_tables`: `python -m benchmarks.star_pairs`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from ._record import RESULTS, Record, command_line, write
from ._tables import Column, Table
from .report import newest

TITLE = "Is it better to couple the layers?"
INTRODUCTION = """\
The test log-likelihood under stripes-and-arrow less that under the mean field, on the same splits of the tables above,
with the same steps of the same engine. Two tests, both two-sided: t for the mean, Wilcoxon's signed ranks, which don't
mind a single split that is far off. The rows for all datasets put their splits together, for the ranks only: a nat
isn't worth the same on each."""
TABLES = (
    Table(
        title="Differences, paired over splits",
        kind="paired",
        names=("dataset", "setting", "layers", "by"),
        columns=(
            Column("difference", "difference", ".4f"),
            Column("better", "splits where it is positive", ".0f"),
            Column("splits", "of", ".0f"),
            Column("p_value", "p, t", ".3g"),
            Column("p_ranks", "p, ranks", ".3g"),
        ),
    ),
)
WORDS = "stripes-and-arrow", "mean-field"
Labels = tuple[str, str, int, str]


def differences(records: Sequence[Mapping[str, Any]]) -> dict[Labels, np.ndarray]:
    """By dataset, setting, layers and engine, over the splits that both were trained on, with as many steps."""
    scores: dict[tuple[Labels, str], dict[tuple[int, int], float]] = {}
    for record in records:
        word, _, layers = str(record.get("model", "")).rpartition("-")
        if record["kind"] == "fit" and word in WORDS:
            labels = record["dataset"], record["setting"], int(layers), record["by"]
            scores.setdefault((labels, word), {})[record["split"], record["steps"]] = record["log_likelihood"]
    found = {}
    for labels in dict.fromkeys(labels for labels, _ in scores):
        ours, theirs = (scores.get((labels, word), {}) for word in WORDS)
        if len(both := sorted(ours.keys() & theirs.keys())) > 1:
            found[labels] = np.array([ours[split] - theirs[split] for split in both])
    return found


def compared(records: Sequence[Mapping[str, Any]]) -> list[Record]:
    """A record for every comparison, and one for all datasets together."""
    found = differences(records)
    together: dict[Labels, list[np.ndarray]] = {}
    for (_, setting, layers, by), values in found.items():
        together.setdefault(("all", setting, layers, by), []).append(values)
    pooled = {labels: np.concatenate(values) for labels, values in together.items() if len(values) > 1}
    return [_record(labels, values) for labels, values in sorted((found | pooled).items())]


def _record(labels: Labels, values: np.ndarray) -> Record:
    t_test: Any = stats.ttest_1samp(values, 0.0)
    ranks: Any = stats.wilcoxon(values)
    of_the_mean: Record = {"difference": float(np.mean(values)), "p_value": float(t_test.pvalue)}
    names: Record = dict(zip(("dataset", "setting", "layers", "by"), labels, strict=True))
    counts: Record = {"better": int(np.sum(values > 0)), "splits": len(values)}
    return (
        {"kind": "paired", "p_ranks": float(ranks.pvalue)}
        | names
        | counts
        | (of_the_mean if labels[0] != "all" else {})
    )


def main(arguments: Sequence[str]) -> Path:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.star_pairs", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen, started = parser.parse_args(arguments), time.perf_counter()
    files = [content for content in newest(chosen.results).values() if content["benchmark"] == "star_tables"]
    return write(
        "star_pairs",
        compared([record for content in files for record in content["records"]]),
        command=command_line("benchmarks.star_pairs", arguments),
        precision="float64",
        seeds=sorted({seed for content in files for seed in content["seeds"]}),
        seconds=time.perf_counter() - started,
        peers={},
        folder=chosen.results,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
