"""Matrix products at full precision: on a GPU the default for float32 is TF32, which ruins covariances."""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp

matmul = partial(jnp.matmul, precision="highest")
einsum = partial(jnp.einsum, precision="highest")
