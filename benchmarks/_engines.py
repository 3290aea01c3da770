"""Engines that several benchmarks train with."""

from dgpax.inference import Gradient, NaturalGradient, Settling


def falling(engine: NaturalGradient | Gradient, steps: int, steps_per_call: int) -> Settling:
    """So many steps, with rates that fall to zero over the last 60% of them."""
    return Settling(
        engine=engine,
        patience=steps,
        settle_steps=max(1, 3 * steps // 5),
        max_steps=steps,
        steps_per_call=min(steps_per_call, steps),
    )
