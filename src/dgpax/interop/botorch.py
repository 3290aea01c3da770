"""A fit as a model of BoTorch, whose acquisition functions and optimisers then run on it (the extra "botorch")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch  # pyright: ignore[reportMissingImports]
from botorch.models.ensemble import EnsembleModel  # pyright: ignore[reportMissingImports]

from ..fits import NUM_FEATURES, AbstractFit
from ..inference import check_count
from ..programs import compiled
from ..typing import Array, Float

NUM_DRAWS = 128
FEWEST_ROWS = 8


def as_model(
    fitted: AbstractFit, *, num_draws: int = NUM_DRAWS, num_features: int = NUM_FEATURES, seed: int = 0
) -> EnsembleModel:
    """A model of BoTorch whose posterior is `num_draws` functions drawn from the fit, with their gradients.

    Inputs and outputs are in the units of the raw data. BoTorch maximises: for a minimum, give the acquisition function
    an objective that turns the sign, or fit −y.
    """
    check_count("as_model(num_draws=...)", num_draws, 2)
    functions = fitted.functions(num_draws, seed=seed, num_features=num_features)
    return DrawnFunctions(functions, fitted.model.layers[-1].num_outputs)


class DrawnFunctions(EnsembleModel):
    """Functions drawn from a fit, as the members of one of BoTorch's ensembles."""

    def __init__(self, functions: Callable[..., Any], num_outputs: int):
        super().__init__()
        self.functions = functions
        self._num_outputs = num_outputs

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """[*b, q, D] to [*b, S, q, P]."""
        values = _Evaluated.apply(X.reshape(-1, X.shape[-1]), self.functions)
        whole = values.reshape(values.shape[0], *X.shape[:-1], values.shape[-1])
        return torch.movedim(whole, 0, -3)


class _Evaluated(torch.autograd.Function):
    """Functions of JAX in PyTorch, with their derivatives."""

    @staticmethod
    def forward(ctx, x, functions):
        rows = _filled(x.detach().cpu().numpy())
        ctx.functions, ctx.rows, ctx.count = functions, rows, len(x)
        return torch.as_tensor(np.array(_values(functions, rows)[:, : len(x)]), dtype=x.dtype, device=x.device)

    @staticmethod
    def backward(ctx, *grads):
        (grad,) = grads
        slopes = np.zeros((grad.shape[0], len(ctx.rows), grad.shape[2]))
        slopes[:, : ctx.count] = grad.detach().cpu().numpy()
        moved = np.array(_pulled_back(ctx.functions, ctx.rows, jnp.asarray(slopes)))[: ctx.count]
        return torch.as_tensor(moved, dtype=grad.dtype, device=grad.device), None


@compiled
def _values(functions: Callable, x: Float[Array, "N D"]) -> Float[Array, "S N P"]:
    return functions(x)


@compiled
def _pulled_back(functions: Callable, x: Float[Array, "N D"], slopes: Float[Array, "S N P"]) -> Float[Array, "N D"]:
    return jax.vjp(functions, x)[1](slopes)[0]


def _filled(x: np.ndarray) -> Float[Array, "N D"]:
    """Rows up to a power of two, so that programs are shared."""
    size = max(FEWEST_ROWS, 1 << (len(x) - 1).bit_length())
    return jnp.asarray(np.concatenate([x, np.broadcast_to(x[:1], (size - len(x), x.shape[1]))]).astype(float))
