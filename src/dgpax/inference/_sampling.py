"""Inference by draws of the inducing outputs of all layers."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..layers import GPLayer, gp_layers
from ..model import DeepGP
from ..objectives import log_joint
from ..parameters import AbstractParameter, Real
from ..posteriors import Particles, process_widths
from ._base import AbstractMethod
from ._sghmc import SGHMC, MarkovChain


class ModelAndChain(NamedTuple):
    """What sampling works on: the model, whose parameters are trained, and the chain of its inducing outputs."""

    model: DeepGP
    chain: MarkovChain


class Sampling(AbstractMethod):
    """Draws from p(v | y) over the whitened inducing outputs of all layers, by SGHMC; the posterior is the mixture of
    `num_draws` of them. Kernel parameters, noise and inducing points are trained along with the chain's warm-up."""

    num_draws: int = eqx.field(static=True, default=100)

    def __check_init__(self):
        if self.num_draws < 1:
            raise InputError(f"Sampling(num_draws=...) must be at least 1; got {self.num_draws}.")

    def target(self, model, data):
        process_widths(model.layers)
        own, dtype = gp_layers(model.layers), data.x.dtype
        current = tuple(_start(own[i], dtype) if i in own else None for i in range(len(model.layers)))
        kept = tuple(None if v is None else Real(jnp.zeros((self.num_draws, *v.shape), dtype)) for v in current)
        return ModelAndChain(model, MarkovChain(current, kept))

    def terms(self, target, data, key):
        return log_joint(target.model, Particles(_values(target.chain.current)), data, key=key)

    def finish(self, target, data):
        return target.model, Particles(_values(target.chain.kept))

    def outcome(self, target, model, data, scaled):
        number = _num_different(target.chain.kept)
        fitted = super().outcome(target, model, data, scaled)
        if number == self.num_draws:
            return fitted
        note = (
            f"The chain was ended after {number} of {self.num_draws} draws, which are repeated: predictions are rough."
        )
        return fitted._replace(notes=(*fitted.notes, note))

    def default_engine(self):
        return SGHMC(num_draws=self.num_draws)


def _start(layer: GPLayer, dtype) -> Real:
    return Real(jnp.zeros((layer.num_blocks, layer.own_inducing().num_inducing), dtype))


def _num_different(kept: tuple[AbstractParameter | None, ...]) -> int:
    first = np.asarray(next(part.value for part in kept if part is not None))
    return len(np.unique(first.reshape(len(first), -1), axis=0))


def _values(parts: tuple[AbstractParameter | None, ...]):
    return tuple(None if part is None else part.value for part in parts)
