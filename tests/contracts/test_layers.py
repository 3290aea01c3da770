"""Every layer: row by row, under leading axes, in both precisions, and it says what it draws from."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from contracts.completeness import final_subclasses
from dgpax import DeepGP, GPLayer
from dgpax.errors import InputError
from dgpax.inducing import Points
from dgpax.kernels import RBF
from dgpax.layers import AbstractLayer, Append, Given, LatentVariables, gp_layers, latent_layers
from dgpax.likelihoods import GaussianNoise
from dgpax.parameters import cast

LAYERS = {
    GPLayer: lambda: GPLayer(RBF(0.7), 2, inducing=Points(jnp.linspace(0.0, 1.0, 4)[:, None])),
    Append: lambda: Append(0),
    LatentVariables: lambda: LatentVariables(2),
}
WIDTHS = {GPLayer: 2, Append: 3, LatentVariables: 3}


def test_every_layer_has_a_row():
    assert set(LAYERS) == final_subclasses(AbstractLayer)


def _draw(x):
    return jnp.concatenate([x, 2.0 * x], axis=-1)


@pytest.mark.parametrize("kind", LAYERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_layer(kind, dtype):
    layer = cast(LAYERS[kind](), dtype)
    x = jr.normal(jr.key(0), (3, 5, 1), dtype)
    given = Given(x).then(jnp.concatenate([x, x], axis=-1)) if kind is Append else Given(x)
    given = given.then(x) if kind is Append else given
    made = layer.apply(given, _draw)
    assert made.shape == (3, 5, WIDTHS[kind]) and made.dtype == dtype
    one_row = Given(x[1, 2:3], tuple(part[1, 2:3] for part in given.outputs))
    np.testing.assert_array_equal(layer.apply(one_row, _draw), made[1, 2:3])
    np.testing.assert_array_equal(jax.jit(lambda given: layer.apply(given, _draw))(given), made)


@pytest.mark.parametrize("kind", LAYERS, ids=lambda kind: kind.__name__)
def test_what_is_random_is_named(kind):
    layer, asked = LAYERS[kind](), []
    x = jnp.ones((4, 1))
    layer.apply(Given(x).then(x), lambda inputs: asked.append(inputs) or _draw(inputs))
    assert bool(asked) == (layer.random is not None)
    assert len(gp_layers((layer,))) + len(latent_layers((layer,))) == bool(asked)
    if layer.random is not None:
        assert layer.random.num_draws == 2


def test_what_is_given():
    x, f = jnp.ones((4, 1)), jnp.zeros((4, 2))
    given = Given(x).then(f)
    assert given.of("inputs") is x and given.of(0) is f and given.last is f and Given(x).last is x
    for source in (1, -1, "outputs"):
        with pytest.raises(InputError, match="a layer before it"):
            given.of(source)


def test_models_end_with_a_gp():
    with pytest.raises(InputError, match="at least one layer"):
        DeepGP((), GaussianNoise())
