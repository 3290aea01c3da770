"""`dgpax bench`: how fast this machine trains."""

from __future__ import annotations

from typing import Annotated

import typer

from ._app import app, listing, print_json, say

SIZES = ((1_000, 50), (10_000, 100))
NUM_INPUTS = 8
BATCH_ROWS = 1_000
STEPS_PER_CALL = 5


@app.command("bench")
def bench_command(
    calls: Annotated[int, typer.Option(min=2, help=f"Timed calls of {STEPS_PER_CALL} steps.")] = 6,
    json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Time steps of a deep GP with two layers at two sizes: seconds to compile, milliseconds a step.

    Examples: dgpax bench · dgpax bench --calls 20 --json
    """
    import jax

    results = [measure(rows, inducing, calls) for rows, inducing in SIZES]
    if json:
        print_json({"device": str(jax.devices()[0].device_kind), "sizes": results})
        return
    rows = [
        (f"{one['rows']:,}", str(one["inducing"]), f"{one['first_call_s']:.1f} s", f"{1e3 * one['step_s']:.1f} ms")
        for one in results
    ]
    say(listing(("rows", "inducing points", "first call, with compilation", "a step"), rows))
    say(f"Two layers, {NUM_INPUTS} inputs, batches of up to {BATCH_ROWS:,} rows, natural gradients, "
        f"on {jax.devices()[0].device_kind}.")  # fmt: skip


def measure(num_rows: int, num_inducing: int, calls: int) -> dict[str, int | float]:
    """The first call of the compiled step, and the median time of a step in the calls after it."""
    import numpy as np

    from ..architectures import deep_gp
    from ..data import InMemory, dataset
    from ..inference import NaturalGradient, Progress, fit

    rng = np.random.default_rng(0)
    x = rng.normal(size=(num_rows, NUM_INPUTS))
    data = dataset(x, np.sin(x.sum(axis=1)) + 0.1 * rng.normal(size=num_rows))
    seconds: list[float] = []

    def watch(progress: Progress) -> None:
        seconds.append(progress.seconds)

    engine = NaturalGradient(max_steps=(calls + 1) * STEPS_PER_CALL, steps_per_call=STEPS_PER_CALL)
    model, feed = deep_gp(data, 2, num_inducing), InMemory(data, BATCH_ROWS)
    fit(model, feed, "variational", engine=engine, callbacks=[watch], progress=False)
    step = float(np.median(np.diff(seconds))) / STEPS_PER_CALL
    return {"rows": num_rows, "inducing": num_inducing, "first_call_s": seconds[0], "step_s": step}
