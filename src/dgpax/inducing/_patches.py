"""Values of the patch response of convolutional kernels."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..errors import InputError, UnknownNameError
from ..kernels import Convolutional, ImageToImage
from ..parameters import AbstractParameter, as_real
from ..typing import ArrayLike, Float
from ._base import AbstractInducing
from ._greedy import greedy_variance
from ._kmeans import at_most_distinct

MAX_PATCHES = 200_000
MAX_GREEDY = 10_000


class Patches(AbstractInducing):
    """u_m = g(z_m) for patches z of shape [M, d], or [Q, M, d] for sets of their own [van der Wilk et al. 2017].

    d is the number of pixels of a patch, times channels; two more where the kernel looks at positions.
    """

    locations: AbstractParameter = eqx.field(converter=as_real)

    def __check_init__(self):
        if len(self.locations.shape) not in (2, 3) or 0 in self.locations.shape:
            raise InputError(
                "Patches(locations=...) needs shape (M, numbers per patch), or (Q, M, numbers per patch) for separate "
                f"ones; got {self.locations.shape}. To draw some: Patches.from_images(kernel, images, num_inducing)."
            )

    @classmethod
    def from_images(
        cls,
        kernel: Convolutional | ImageToImage,
        images: Float[ArrayLike, "N D"],
        num_inducing: int,
        *,
        choice: str = "random",
        seed: int = 0,
    ) -> Patches:
        """Distinct patches of the images, as the kernel cuts them.

        `choice` is "random", or "variance" for those that are least determined by the ones before under the patch
        kernel. They come from a random subset of at most 200,000 patches (10,000 for "variance").
        """
        if choice not in ("random", "variance"):
            raise UnknownNameError(f"choice={choice!r} isn't known. There are: random, variance.")
        rng = np.random.default_rng(seed)
        every = np.asarray(images)
        num_images = min(len(every), -(-MAX_PATCHES // kernel.grid.num_patches))
        rows = kernel.grid.rows(jnp.asarray(every[rng.choice(len(every), num_images, replace=False)]))
        distinct, num_inducing = at_most_distinct(rows, num_inducing)
        if choice == "random":
            return cls(rows[rng.choice(distinct, num_inducing, replace=False)])
        candidates = rng.choice(distinct, min(len(distinct), max(MAX_GREEDY, num_inducing)), replace=False)
        return cls(greedy_variance(kernel.patch_kernel, rows[candidates], num_inducing))

    @property
    def num_inducing(self) -> int:
        return self.locations.shape[-2]
