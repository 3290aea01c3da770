"""The three statistics of the literature."""

from __future__ import annotations

import jax.numpy as jnp

from ..distributions import Gaussian
from ..inducing import AbstractInducing
from ..kernels import AbstractKernel
from ..linalg import einsum
from ..typing import Array, Float
from ._expansion import expansion


def psi0(inducing: AbstractInducing, kernel: AbstractKernel, x: Gaussian) -> Float[Array, "*b Q N"]:
    """ψ0 = E[k(x, x)] of every row of x, [..., 1, N, D] [Titsias & Lawrence 2010; Girard et al. 2003]."""
    return expansion(inducing, kernel).expected_variance(x)


def psi1(inducing: AbstractInducing, kernel: AbstractKernel, x: Gaussian) -> Float[Array, "*b Q M N"]:
    """ψ1 = E[Kuf]."""
    return expansion(inducing, kernel).expected_cross(x)


def psi2(inducing: AbstractInducing, kernel: AbstractKernel, x: Gaussian) -> Float[Array, "*b Q N M M"]:
    """ψ2 = E[Kuf Kfu] of every row by itself; where only f is wanted, `uncertain_marginal` never builds it."""
    terms = expansion(inducing, kernel)
    mean = jnp.swapaxes(terms.expected_cross(x), -1, -2)
    return terms.cross_covariance(x) + einsum("...m,...k->...mk", mean, mean)
