"""Models with several layers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..data import AbstractFeed, Dataset, Scaling, as_feed
from ..errors import InputError
from ..inducing import Points, k_means
from ..kernels import RBF, AbstractKernel, White
from ..layers import Append, GPLayer, LatentVariables, beside
from ..likelihoods import AbstractLikelihood, GaussianNoise
from ..means import linear_map
from ..model import DeepGP
from ..parameters import Positive, fixed
from ..typing import Array, Float
from ._shallow import NOISE_START, VARIANCE_FLOOR, check_data, noise_start

LARGEST_WIDTH = 30
RANK_ROWS = 1000
"""Enough to see how many directions they span."""
BETWEEN_LAYERS = 1e-5


def dsvi(
    data: Dataset | AbstractFeed,
    num_layers: int = 2,
    num_inducing: int = 100,
    *,
    likelihood: AbstractLikelihood | None = None,
    seed: int = 0,
) -> DeepGP:
    """The model of [DSVI, section 5 and appendix]: inner layers of width min(30, D), k-means inducing points.

    ARD RBF kernels with length scales and variance 2, noise of variance 1e-5 between layers, Gaussian noise of
    variance 0.01; fixed linear means in the inner layers, through which the inducing points are mapped too.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> len(dgpax.dsvi(data, num_layers=3, num_inducing=5).layers)
    3
    """
    plan = _Plan.of(data, num_layers, None, likelihood, 0.01)
    return plan.stack(num_layers, num_inducing, seed, _dsvi_kernel, _dsvi_kernel)


def star(
    data: Dataset | AbstractFeed,
    num_layers: int = 3,
    num_inducing: int = 128,
    *,
    width: int = 5,
    likelihood: AbstractLikelihood | None = None,
    seed: int = 0,
) -> DeepGP:
    """The model of [STAR, appendix D]: as `dsvi`, with inner layers of width 5 and 128 inducing points; length scales
    and variances 1, those variances fixed in inner layers, and noise of variance 1e-3 between layers.

    `num_layers` counts all of them. For posteriors that couple them: `Variational("stripes-and-arrow")`.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> [layer.num_outputs for layer in dgpax.star(data, num_layers=3, num_inducing=5).layers]
    [5, 5, 1]
    """
    plan = _Plan.of(data, num_layers, width, likelihood, 0.01)
    return plan.stack(num_layers, num_inducing, seed, _star_inner_kernel, _unit_kernel, noise_between=1e-3)


def deep_gp(
    data: Dataset | AbstractFeed,
    num_layers: int = 2,
    num_inducing: int = 100,
    *,
    width: int | None = None,
    likelihood: AbstractLikelihood | None = None,
    append_inputs: bool = False,
    num_latents: int = 0,
    seed: int = 0,
) -> DeepGP:
    """A deep model that needs no tuning.

    Length scales start at the median distance of what a layer sees, inner layers start near the identity, inducing
    points at cluster centres. `width` of the inner layers is min(30, D) unless given. `append_inputs` puts x beside
    the inputs of every later layer; `num_latents` puts latent variables beside x, for densities that aren't Gaussian.
    Targets are standardised for Gaussian noise, the default, and others of any scale (Student's t, noise that depends
    on x), and left alone for counts, labels and the like.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> model = dgpax.deep_gp(data, num_layers=3, num_inducing=5)
    >>> [layer.num_outputs for layer in model.layers]
    [1, 1, 1]
    >>> counts = dgpax.dataset(x, np.arange(20) // 4)
    >>> model = dgpax.deep_gp(counts, 2, 5, likelihood=dgpax.likelihoods.Poisson())
    """
    plan = _Plan.of(data, num_layers, width, likelihood, NOISE_START)
    return plan.stack(
        num_layers,
        num_inducing,
        seed,
        _median_kernel,
        _median_kernel,
        append_inputs=append_inputs,
        num_latents=num_latents,
    )


class _Plan(eqx.Module):
    """What all architectures need to know first."""

    x: Float[Array, "N D"]
    width: int
    num_outputs: int
    likelihood: AbstractLikelihood
    scaling: Scaling

    @classmethod
    def of(
        cls,
        rows: Dataset | AbstractFeed,
        num_layers: int,
        width: int | None,
        likelihood: AbstractLikelihood | None,
        noise: float,
    ) -> _Plan:
        feed = as_feed(rows)
        data = feed.head
        check_data(data)
        if num_layers < 1:
            raise InputError(f"A deep GP needs num_layers >= 1; got {num_layers}.")
        if width is not None and width < 1:
            raise InputError(f"Inner layers need width >= 1; got {width}. Leave it out for the default.")
        if likelihood is None:
            likelihood = GaussianNoise(noise_start(noise, data.x.dtype))
        likelihood.check_targets(np.asarray(data.y))
        scaling = feed.standard if likelihood.in_any_units else feed.standard.of_inputs()
        num_outputs = likelihood.num_latents(data.num_outputs)
        x = dataclasses.replace(data, x=scaling.inputs(data.x)).counted().x
        width = _suitable_width(x) if width is None else width
        return cls(x, width, num_outputs, likelihood, scaling)

    def stack(
        self,
        num_layers: int,
        num_inducing: int,
        seed: int,
        inner_kernel: Callable[[Float[Array, "N D"]], AbstractKernel],
        last_kernel: Callable[[Float[Array, "N D"]], AbstractKernel],
        *,
        noise_between: float = BETWEEN_LAYERS,
        append_inputs: bool = False,
        num_latents: int = 0,
    ) -> DeepGP:
        """Layer upon layer; inputs x and inducing points z are carried through the mean functions."""
        x, z = self.x, k_means(self.x, num_inducing, seed)
        layers, inputs = [], (x, z)
        if num_latents:
            layers.append(LatentVariables(num_latents))
            w = jnp.asarray(np.random.default_rng(seed).normal(size=(len(x) + len(z), num_latents)), x.dtype)
            x, z = beside(x, w[: len(x)]), beside(z, w[len(x) :])
        for _ in range(num_layers - 1):
            mean = linear_map(x, self.width)
            kernel = inner_kernel(x) + _noise_between(noise_between, x.dtype)
            layers.append(GPLayer(kernel, self.width, mean, Points(z)))
            x, z = mean(x), mean(z)
            if append_inputs:
                layers.append(Append())
                x, z = beside(x, inputs[0]), beside(z, inputs[1])
        layers.append(GPLayer(last_kernel(x), self.num_outputs, inducing=Points(z)))
        return DeepGP(tuple(layers), self.likelihood, self.scaling)


def _suitable_width(x: Float[Array, "N D"]) -> int:
    """As many directions as rows span, 30 at most."""
    if x.shape[1] <= LARGEST_WIDTH:
        return x.shape[1]
    some = np.asarray(x[:RANK_ROWS], float)
    return max(1, min(LARGEST_WIDTH, int(np.linalg.matrix_rank(some - some.mean(axis=0)))))


def _dsvi_kernel(x: Float[Array, "N D"]) -> RBF:
    return RBF(jnp.full(x.shape[1], 2.0, x.dtype), jnp.asarray(2.0, x.dtype))


def _unit_kernel(x: Float[Array, "N D"]) -> RBF:
    return RBF(jnp.ones(x.shape[1], x.dtype), jnp.ones((), x.dtype))


def _star_inner_kernel(x: Float[Array, "N D"]) -> RBF:
    return RBF(jnp.ones(x.shape[1], x.dtype), fixed(jnp.ones((), x.dtype)))


def _median_kernel(x: Float[Array, "N D"], rows: int = 500) -> RBF:
    """ARD RBF whose length scales are the median distance of two rows, the same in every column."""
    some = np.asarray(x)[np.linspace(0, len(x) - 1, min(rows, len(x))).astype(int)]
    squared = np.maximum(np.sum((some[:, None] - some[None]) ** 2, axis=-1), 0.0)
    distances = np.sqrt(squared[np.triu_indices(len(some), 1)])
    typical = float(np.median(distances)) if np.any(distances > 0) else 1.0
    lengthscales = jnp.full(x.shape[1], typical if typical > 0 else float(np.max(distances)), x.dtype)
    return RBF(lengthscales, Positive(jnp.ones((), x.dtype), floor=VARIANCE_FLOOR))


def _noise_between(variance: float, dtype) -> White:
    """Between-layer noise, learnt [DSVI, section 2.2]."""
    return White(Positive(jnp.asarray(variance, dtype), floor=0.1 * BETWEEN_LAYERS))
