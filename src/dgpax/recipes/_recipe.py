"""What a person says about a model and its training."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InputError, UnknownNameError
from ..inference import as_seed, check_count, check_seconds
from ..posteriors import POSTERIORS
from ..stride import Composition, Convolution, Injective, Residual
from ._observations import LIKELIHOODS
from ._shape import KERNELS

INFERENCES = ("variational", "stride", "sghmc", "exact", "sparse")
ONE_LAYER = ("exact", "sparse")
ARCHITECTURES = {"residual": Residual, "composition": Composition, "convolution": Convolution, "injective": Injective}
OPEN = {"likelihood": LIKELIHOODS, "kernel": KERNELS}
AT_LEAST_ONE = ("num_layers", "num_inducing", "num_particles", "max_steps", "batch_size")


@dataclass(frozen=True)
class Recipe:
    """Words, checked; None lets the rows decide.

    `posterior` is for variational inference, `architecture` and `num_particles` for STRIDE. `max_time` is in seconds,
    `progress` as in `fit`.
    """

    inference: str = "variational"
    posterior: str = "mean-field"
    likelihood: str | None = None
    kernel: str | None = None
    num_layers: int | None = None
    num_inducing: int | None = None
    architecture: str = "residual"
    num_particles: int | None = None
    max_steps: int | None = None
    max_time: float | int | None = None
    batch_size: int | None = None
    seed: int = 0
    progress: bool | None = None

    def __post_init__(self):
        known = {"inference": INFERENCES, "posterior": POSTERIORS, "architecture": ARCHITECTURES}
        known |= {name: words for name, words in OPEN.items() if getattr(self, name) is not None}
        for name, words in known.items():
            if getattr(self, name) not in words:
                raise UnknownNameError(f"{name}={getattr(self, name)!r} isn't known. There are: {', '.join(words)}.")
        if self.inference in ONE_LAYER and self.num_layers not in (None, 1):
            raise InputError(
                f'inference="{self.inference}" is for one layer; got num_layers={self.num_layers}. '
                'Leave it out, or say inference="variational".'
            )
        if self.inference == "stride" and self.kernel not in (None, "rbf"):
            raise InputError(f'inference="stride" has kernels of its own; got kernel={self.kernel!r}. Leave it out.')
        for name in AT_LEAST_ONE:
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name), 1)
        check_seconds("max_time", self.max_time)
        check_count("A seed (random_state)", as_seed(self.seed), 0)

    @property
    def depth(self) -> int:
        """The number of layers."""
        return self.num_layers or (1 if self.inference in ONE_LAYER else 2)
