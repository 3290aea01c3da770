"""The words that signatures use. Axes: N data, B batch, D input, P output, Q latent, M inducing, S samples."""

from __future__ import annotations

from jaxtyping import Array as Array
from jaxtyping import ArrayLike as ArrayLike
from jaxtyping import Bool as Bool
from jaxtyping import Float as Float
from jaxtyping import Int as Int
from jaxtyping import Key as Key
from jaxtyping import PyTree as PyTree
from jaxtyping import Shaped as Shaped

RandomKey = Key[Array, ""]
Scalar = Float[Array, ""]
