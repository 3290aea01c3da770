"""How long a STRIDE fit goes on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..errors import InputError
from ._problem import Posterior, largest_divisor, suitable_particles_at_once


@dataclass(frozen=True)
class Schedule:
    """Iterations of expectation (steps of every chain) and maximisation (exchanges of inducing points).

    The proposal scale is adapted during the first `warm_up` of the iterations, None means the first half, and frozen
    then. `particles_at_once` bounds the memory, O(N·M) a particle; None means as many as fit into a cache. Several such
    groups run side by side only where all of them together need little, 200 MB for the covariances.
    `num_updates` are steps of Adam, in every maximisation, on the kernel of the top layer and on the noise; the paper
    has none, and keeps those of the sparse GP.
    """

    num_iterations: int = 10
    num_steps: int = 400
    num_exchanges: int = 5
    num_candidates: int = 500
    num_updates: int = 0
    warm_up: int | None = None
    particles_at_once: int | None = None

    def __post_init__(self):
        least = {"num_iterations": 0, "num_steps": 1, "num_exchanges": 0, "num_candidates": 1}
        least |= {"num_updates": 0, "warm_up": 0, "particles_at_once": 1}
        for name, bound in least.items():
            value = getattr(self, name)
            if value is not None and value < bound:
                raise InputError(f"Schedule({name}=...) must be at least {bound}; got {value}.")

    @property
    def warm_up_iterations(self) -> int:
        """Iterations during which the proposal scale is adapted."""
        return self.num_iterations // 2 if self.warm_up is None else self.warm_up

    def resolved(self) -> Schedule:
        """The same with the warm-up as a number, which more iterations then don't change."""
        return replace(self, warm_up=self.warm_up_iterations)

    def at_once(self, posterior: Posterior, num_particles: int) -> int:
        """Particles that are worked on together: a divisor of their number."""
        suitable = suitable_particles_at_once(num_particles, posterior.num_entries)
        return largest_divisor(num_particles, self.particles_at_once or suitable)
