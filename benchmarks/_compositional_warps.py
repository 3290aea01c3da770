"""Figures D1 and 6 of CU: sequences that are aligned, and a heartbeat in warped time."""

from __future__ import annotations

import argparse
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from dgpax import load
from dgpax.alignment import WarpedDraws, WarpedFit, align, default_engine, fit_warped, pairwise_distance
from dgpax.kernels import RBF
from dgpax.parameters import fixed

from ._record import Record
from ._tables import Column, Table

TABLES = (
    Table(
        title="Three warped sinc sequences, aligned (Figure D1)",
        kind="alignment",
        names=("dataset", "posterior"),
        columns=(
            Column("distance_before", "distance of the sequences", ".3f"),
            Column("distance", "of the aligned functions", ".3f"),
            Column("residual", "residual / 0.01", ".2f"),
            Column("warp_deviation", "sd of the warps", ".1e"),
            Column("function_deviation", "sd of the functions", ".1e"),
            Column("bound", "ELBO", ".1f"),
            Column("seconds", "seconds", ".0f"),
        ),
    ),
    Table(
        title="A heart sound in warped time (Figure 6)",
        kind="heartbeat",
        names=("dataset", "posterior"),
        columns=(
            Column("residual", "residual / noise", ".3f"),
            Column("residual_ratio", "residual / mean-field's", ".3f"),
            Column("warp_deviation", "sd of the warps", ".1e"),
            Column("warp_ratio", "sd / mean-field's", ".1f"),
            Column("function_deviation", "sd of the function", ".1e"),
            Column("bound", "ELBO", ".1f"),
            Column("seconds", "seconds", ".0f"),
        ),
    ),
)
POSTERIORS = ("mean-field", "fully-coupled", "points-as-locations")
ALIGNMENT_STEPS = 3000
HEARTBEAT_STEPS = 10_000
SEQUENCE_NOISE = 0.01
SOUND = (0.76, 0.92)
"""The first heart sound of the second beat, in seconds: 98 rows."""
COMPARED = (("warp", "_deviation"), ("residual", ""))
SHOWN = 20
TITLES = ("warp $g(t)$", "function $f(x)$", "$f(g(t))$ and data")
TITLES_OF_SEVERAL = ("warps $g_j(t)$", "aligned functions $f_j(x)$", "$f_j(g_j(t))$ and data")
COLORS = ("#2f6db3", "#d9772b", "#3d8f5f")


def alignment(arguments: argparse.Namespace) -> list[Record]:
    """y_j = sinc(3 g_j(t)) + 0.01 noise at 50 times for three warps g_j, and the posteriors of what aligns them.

    Distances are root mean squares over t, averaged over pairs of sequences and draws; standard deviations are of 200
    draws at fixed t, averaged over t. Times run from −1 to 1.
    """
    t, rng = np.linspace(-1, 1, 50), np.random.RandomState(1)
    warps = (t, t + 0.25 * (1 - t**2), t - 0.2 * (1 - t**2) + 0.05 * np.sin(np.pi * t))
    y = np.stack([np.sinc(3 * warp) + SEQUENCE_NOISE * rng.randn(50) for warp in warps])
    records, drawn = [], {}
    for posterior in POSTERIORS:
        for trial in arguments.seeds:
            engine = default_engine(min(arguments.steps, ALIGNMENT_STEPS))
            fitted = align([(t, row) for row in y], posterior, engine=engine, seed=trial)
            draws = fitted.warped_draws(200, grid=t, seed=7)
            drawn.setdefault(posterior, draws)
            numbers = {
                "distance_before": float(pairwise_distance(jnp.asarray(y))),
                "distance": float(np.mean(pairwise_distance(draws.functions))),
                "distance_largest": float(np.max(pairwise_distance(draws.functions))),
                "residual": _residual(draws, y) / SEQUENCE_NOISE,
            }
            records.append(_record("alignment", "sinc", posterior, trial, fitted, draws, numbers, 1.0))
    if arguments.pictures:
        _draw(arguments.pictures / "alignment.png", drawn, t, y, "t")
    return records


def heartbeat(arguments: argparse.Namespace) -> list[Record]:
    """A heart sound as a stationary function of warped time, under three posteriors and one prior.

    The noise is fixed at that of the recording (by its median absolute deviation, as most of it is quiet), the length
    scale at 0.035 of half of the time shown; 70 inducing points. Ratios are to the mean-field fit of the same seed.
    Residuals are those of draws of the composition,
    root mean square, in units of the noise; warps in units of half of the time shown.
    """
    everything = load("heartbeat_pcg")
    time, amplitude = np.asarray(everything.x)[:, 0], np.asarray(everything.y).reshape(-1)
    t, y = (part[(time > SOUND[0]) & (time < SOUND[1])] for part in (time, amplitude))
    noise = float(np.median(np.abs(amplitude - np.median(amplitude))) / 0.6745)
    records, drawn, collapsed = [], {}, {}
    for posterior in POSTERIORS:
        for trial in arguments.seeds:
            fitted = fit_warped(
                t,
                y,
                posterior,
                kernel=RBF(fixed(0.035), fixed(1.0)),
                noise_variance=fixed((noise / y.std()) ** 2),
                num_inducing=70,
                engine=default_engine(min(arguments.steps, HEARTBEAT_STEPS)),
                seed=trial,
            )
            draws = fitted.warped_draws(200, grid=t, seed=7)
            drawn.setdefault(posterior, draws)
            numbers = {"residual": _residual(draws, y[None]) / noise, "noise": noise}
            scale = float(fitted.scaling.x_scale[0])
            record = _record("heartbeat", "heartbeat_pcg", posterior, trial, fitted, draws, numbers, scale)
            first = collapsed.setdefault(trial, record)
            ratios = {f"{name}_ratio": record[f"{name}{rest}"] / first[f"{name}{rest}"] for name, rest in COMPARED}
            records.append(record | ratios)
            print(posterior, trial, ratios, flush=True)
    if arguments.pictures:
        _draw(arguments.pictures / "heartbeat.png", drawn, t, y[None], "seconds")
    return records


def _residual(draws: WarpedDraws, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((np.asarray(draws.compositions) - y) ** 2)))


def _record(
    kind: str,
    dataset: str,
    posterior: str,
    trial: int,
    fitted: WarpedFit,
    draws: WarpedDraws,
    numbers: dict[str, float],
    time_scale: float,
) -> Record:
    record: Record = {"kind": kind, "dataset": dataset, "posterior": posterior, "trial": trial} | numbers
    record |= {
        "warp_deviation": float(np.mean(np.std(draws.warps, axis=0))) / time_scale,
        "function_deviation": float(np.mean(np.std(draws.functions, axis=0))) / float(fitted.scaling.y_scale[0]),
        "bound": float(fitted.bound(500)),
        "rejected_steps": fitted.report.rejected_steps,
        "seconds": fitted.report.seconds,
    }
    print(record, flush=True)
    return record


def _draw(path: Path, drawn: dict[str, WarpedDraws], t: np.ndarray, y: np.ndarray, unit: str) -> None:
    """A row of panels per posterior, a colour per sequence."""
    import matplotlib.pyplot as plt

    size = (9.6, 2.4 * len(drawn))
    figure, rows = plt.subplots(len(drawn), 3, figsize=size, layout="constrained", squeeze=False, sharex="col")
    for axes, (posterior, draws) in zip(rows, drawn.items(), strict=True):
        for j, color in enumerate(COLORS[: len(y)]):
            for ax, lines in zip(axes, (draws.warps, draws.functions, draws.compositions), strict=True):
                ax.plot(t, np.asarray(lines)[:SHOWN, j].T, color=color, linewidth=0.6, alpha=0.6)
            axes[2].plot(t, y[j], ".", color="black", markersize=2.5)
        for ax in axes:
            ax.spines[["top", "right"]].set_visible(False)
        axes[0].set_ylabel(posterior)
    for ax, title in zip(rows[0], TITLES_OF_SEVERAL if len(y) > 1 else TITLES, strict=True):
        ax.set_title(title)
    for ax, label in zip(rows[-1], (unit, f"warped {unit}", unit), strict=True):
        ax.set_xlabel(label)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


PARTS = {"alignment": alignment, "heartbeat": heartbeat}
