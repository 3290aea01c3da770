"""Few numbers for many."""

from __future__ import annotations

import time

import jax.numpy as jnp
import numpy as np

from ..architectures import gplvm
from ..fits import AbstractFit
from ..inducing import distinct_rows
from ._recipe import Recipe
from ._rows import Rows
from ._train import carry_out
from ._ways import Plan, settling

NUM_INDUCING = 50
MAX_STEPS = 1000


def train_gplvm(recipe: Recipe, y: np.ndarray, num_latents: int | None) -> AbstractFit:
    """A Bayesian GP-LVM of the rows of y with an encoder; None are two latent dimensions, or one for rows on a line."""
    started = time.perf_counter()
    num_latents = _suitable_num_latents(y) if num_latents is None else num_latents
    most = 1 << (len(distinct_rows(jnp.asarray(y))).bit_length() - 1)
    num_inducing = min(recipe.num_inducing or NUM_INDUCING, most)
    model, _, method = gplvm(y, num_latents, num_inducing, encoder=True, seed=recipe.seed)
    data = Rows(np.zeros((len(y), 0)), y).padded()
    engine = settling(True, recipe.max_steps or MAX_STEPS)
    return carry_out(recipe, Plan(model, data, method, engine), started)


def _suitable_num_latents(y: np.ndarray) -> int:
    scale = y.std(axis=0)
    return max(1, min(2, int(np.linalg.matrix_rank((y - y.mean(axis=0)) / np.where(scale > 0, scale, 1.0)))))
