"""Does the report's verdict earn its word? 100 tables whose truth is known, judged on rows that fits hadn't seen and on
fresh draws.

    python -m benchmarks.honesty [--tables 100] [--results FOLDER]

Every table has a function of three inputs and noise of one of several kinds, of which exact GPs with Gaussian noise
know one only; a part of the fits is spoilt on purpose, by a noise that is wrong by a factor. The word is that of
`dgpax.report.verdict` on held-out rows; the truth is the coverage of the same predictions over fresh draws.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import dgpax
from benchmarks._record import RESULTS, Record, command_line, write
from benchmarks._tables import Column, Table
from dgpax.distributions import Gaussian
from dgpax.report import Judgement, judge_distribution, verdict

TITLE = "Does the verdict of a report earn its word?"
INTRODUCTION = """\
100 generated tables with three inputs: exact GPs with Gaussian noise, trained on 150 rows and judged on 600 others.
The noise is Gaussian, uniform, heavy-tailed, skewed or depends on the inputs, and 60 of the predictions are spoilt by a
standard deviation that is wrong by a factor from 0.5 to 1.8. "Off" is how far the share of 20,000 fresh targets inside
their intervals is from what was stated, at the worst of the levels 50, 80, 90, 95 and 99%."""
TABLES = (
    Table(
        "Share of tables that are called honest, by the truth",
        "verdict",
        ("truth",),
        (Column("honest", "Honest", ".2f"), Column("off", "off", ".3f")),
    ),
)
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
TRAINED, HELD_OUT, FRESH = 150, 600, 20_000
FACTORS = (1.0, 0.7, 1.0, 1.4, 1.0, 0.5, 1.0, 1.8, 0.9, 1.1)
"""By which the predicted standard deviation is multiplied."""
WITHIN, BEYOND = 0.03, 0.1
Noise = Callable[[np.random.Generator, np.ndarray], np.ndarray]
NOISES: dict[str, Noise] = {
    "gaussian": lambda rng, x: rng.normal(size=len(x)),
    "uniform": lambda rng, x: np.sqrt(3.0) * rng.uniform(-1.0, 1.0, size=len(x)),
    "heavy tails": lambda rng, x: rng.standard_t(4, size=len(x)) / np.sqrt(2.0),
    "skewed": lambda rng, x: rng.gamma(2.0, size=len(x)) / np.sqrt(2.0) - np.sqrt(2.0),
    "depends on the inputs": lambda rng, x: np.exp(0.8 * x[:, 0]) * rng.normal(size=len(x)),
}


def main(arguments: Sequence[str]) -> Path:
    """Run, print, and record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.honesty", description=__doc__)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen, started = parser.parse_args(arguments), time.perf_counter()
    records = [judged_table(seed) for seed in range(chosen.tables)]
    print(*(f"{name}: {answer}" for name, answer in summary(records).items()), sep="\n")
    return write(
        "honesty",
        records,
        command=command_line("benchmarks.honesty", arguments),
        precision="float64",
        seeds=range(chosen.tables),
        seconds=time.perf_counter() - started,
        peers={},
        folder=chosen.results,
    )


def judged_table(seed: int) -> Record:
    """The word on held-out rows, and how far coverage is off over fresh draws, at the level where it is furthest."""
    rng = np.random.default_rng(seed)
    kind, factor = list(NOISES)[seed % len(NOISES)], FACTORS[seed // len(NOISES) % len(FACTORS)]
    waves, size = rng.normal(size=(3, 4)), rng.uniform(0.1, 0.6)

    def drawn(num_rows: int) -> tuple[np.ndarray, np.ndarray]:
        x = rng.uniform(-1.0, 1.0, size=(num_rows, 3))
        return x, np.sin(2.0 * x @ waves).sum(axis=1) + size * NOISES[kind](rng, x)

    known = dgpax.dataset(*drawn(TRAINED))
    fitted = dgpax.fit(dgpax.gp_regression(known), known, progress=False)

    def said(x: Any) -> Gaussian:
        q = dgpax.predict(fitted, x)
        return Gaussian(jnp.asarray(q.mean), jnp.asarray(q.variance) * factor**2)

    test = dgpax.dataset(*drawn(HELD_OUT))
    found = verdict(Judgement(judge_distribution(test.y, said(test.x)), test, (fitted.report,)))
    x, y = drawn(FRESH)
    covered = {level: float(dgpax.metrics.coverage(y[:, None], said(x), level)) for level in LEVELS}
    off = max(covered, key=lambda level: abs(covered[level] - level))
    most = abs(covered[off] - off)
    truth = "off by more than ten points" if most > BEYOND else "between" if most > WITHIN else "within three points"
    return {"kind": "verdict", "truth": truth, "honest": float(found.word == "Honest"), "off": most, "seed": seed,
            "noise": kind, "factor": factor, "word": found.word, "sentence": found.sentence,
            "most_off": covered[off] - off, "at": off,
            **{f"coverage {level}": share for level, share in covered.items()}}  # fmt: skip


def summary(records: Sequence[Record]) -> dict[str, dict]:
    """How often "Honest" was said where coverage is off by more than ten points, where it is within three, and between
    the two."""
    answer = {}
    for truth in dict.fromkeys(str(record["truth"]) for record in records):
        words = Counter(str(record["word"]) for record in records if record["truth"] == truth)
        answer[truth] = {"tables": words.total(), "honest": words["Honest"], "words": dict(words)}
    return answer


if __name__ == "__main__":
    main(sys.argv[1:])
