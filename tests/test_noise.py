"""The draws of inner layers that all rows of a prediction share."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.stats import kstest

from dgpax import GPLayer
from dgpax.inducing import Points
from dgpax.kernels import RBF
from dgpax.layers import Append, LatentVariables
from dgpax.means import Identity, Zero
from dgpax.posteriors import GaussianBlock, MeanField
from dgpax.propagate import draw_noise, even_noise, for_rows, propagate

Z = jnp.linspace(-1.0, 1.0, 4)[:, None]


def _layers(width: int = 1):
    inner = GPLayer(RBF(1.0), width, Identity() if width == 1 else Zero(), Points(Z))
    return (inner, GPLayer(RBF(1.0), inducing=Points(jnp.tile(Z, width))))


def test_every_layer_that_is_drawn_has_numbers_of_its_own():
    layers = (LatentVariables(2), Append(), *_layers(3))
    latents, none, inner = even_noise(layers, 5, 0, jnp.float64)
    assert none is None
    assert latents is not None and latents.shape == (5, 1, 2)
    assert inner is not None and inner.shape == (5, 1, 3)
    assert [None if part is None else part.shape for part in for_rows((latents, none, inner), 7)] == [
        (5, 7, 2),
        None,
        (5, 7, 3),
    ]
    assert even_noise(_layers()[-1:], 5, 0, jnp.float64) == ()


@pytest.mark.parametrize("num_samples", [1, 100])
def test_every_draw_is_fair(num_samples):
    """The last of the points, over 200 seeds, against the normal distribution; fails by chance once in 10,000 times."""
    layers = _layers(2)
    drawn = np.array([even_noise(layers, num_samples, seed, jnp.float64)[0] for seed in range(200)])
    assert drawn.shape == (200, num_samples, 1, 2)
    for column in range(2):
        assert kstest(drawn[:, -1, 0, column], "norm").pvalue > 1e-4


def test_averages_are_closer_than_those_over_independent_draws():
    """Of the mean behind an inner layer with a wide posterior, over 30 seeds: less than half the deviation (it is a
    twentieth here)."""
    layers = _layers()
    q = MeanField([GaussianBlock(jr.normal(jr.key(i), (1, 4)), 0.5 * jnp.eye(4)[None]) for i in range(2)])
    x, carry = jnp.linspace(-1.0, 1.0, 5)[:, None], q.begin(layers)

    @eqx.filter_jit
    def mean(noise):
        return jnp.mean(propagate(layers, q, x, carry, noise).marginal().mean, axis=0)

    even = [mean(for_rows(even_noise(layers, 64, seed, x.dtype), 5)) for seed in range(30)]
    independent = [mean(draw_noise(layers, jr.key(seed), 64, 5, x.dtype)) for seed in range(30)]
    assert np.all(np.std(even, axis=0) < 0.5 * np.std(independent, axis=0))
    tolerance = 5 * np.std(independent, axis=0) / np.sqrt(30)
    assert np.all(np.abs(np.mean(even, axis=0) - np.mean(independent, axis=0)) < tolerance)


def test_a_draw_of_very_many_numbers_is_one_of_independent_ones():
    (noise,) = even_noise(_layers(1_500), 3, 0, jnp.float32)
    assert noise is not None and noise.shape == (3, 1, 1_500) and noise.dtype == jnp.float32
    assert abs(float(jnp.std(noise)) - 1.0) < 0.05
