"""Convolutional kernels, inducing patches and image-to-image layers against plain loops."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import ClosedJaxpr, Jaxpr
from reference import convolutional as reference

import dgpax
from dgpax import DeepGP, GPLayer
from dgpax.covariances import Kuf, Kuu
from dgpax.data import InMemory
from dgpax.errors import DgpaxWarning, InputError, UnknownNameError
from dgpax.inducing import Patches, Points
from dgpax.inference import NaturalGradient
from dgpax.kernels import RBF, Convolutional, ImageToImage, Matern32, PatchGrid, White, _chunks
from dgpax.likelihoods import BernoulliProbit
from dgpax.means import Linear
from dgpax.parameters import cast, fixed
from dgpax.posteriors import GaussianBlock, MeanField
from dgpax.propagate import draw_noise, outputs_of

LENGTHSCALE, VARIANCE = 1.3, 1.7
WEIGHTS = np.linspace(-0.5, 1.5, 6)

# image_shape, patch_shape and the arguments of the kernel; all have 6 patches.
CASES = {
    "plain": ((4, 3), (3, 1), {}),
    "weighted": ((4, 3), (3, 1), {"weights": WEIGHTS}),
    "colour": ((3, 4, 2), (2, 2), {}),
    "stride": ((5, 3), (1, 2), {"stride": 2, "weights": WEIGHTS[:3]}),
    "position": ((4, 3), (3, 1), {"position": RBF(2.0), "weights": WEIGHTS}),
}
each_case = pytest.mark.parametrize("case", CASES)


def _setting(case, rng, num_images=4):
    """The kernel, images, inducing patches, and for the loops: how to cut, the patch kernel, the weights."""
    image_shape, patch_shape, arguments = CASES[case]
    kernel = Convolutional(RBF(LENGTHSCALE, VARIANCE), image_shape, patch_shape, **arguments)
    images, positions = rng.normal(size=(num_images, np.prod(image_shape))), "position" in arguments

    def cut(image):
        return reference.patches(image, image_shape, patch_shape, arguments.get("stride", 1), positions)

    def k(a, b):
        if not positions:
            return reference.rbf(a, b, LENGTHSCALE, VARIANCE)
        return reference.rbf(a[:-2], b[:-2], LENGTHSCALE, VARIANCE) * reference.rbf(a[-2:], b[-2:], 2.0, 1.0)

    return kernel, images, rng.normal(size=(5, kernel.grid.num_columns)), cut, k, arguments.get("weights")


@eqx.filter_jit
def _evaluate(kernel, z, x, y):
    return kernel.gram(x), kernel.cross(x, y), kernel.diag(x), Kuf(Patches(z), kernel, x[None])[0]


@each_case
def test_covariances_agree_with_loops(case, rng):
    kernel, images, z, cut, k, weights = _setting(case, rng)
    x, y = images[:3], images[2:]
    gram, cross, diag, inducing = _evaluate(kernel, jnp.asarray(z), jnp.asarray(x), jnp.asarray(y))
    expected = reference.cross(x, x, cut, k, weights)
    np.testing.assert_allclose(gram, expected, atol=1e-12)
    np.testing.assert_allclose(diag, np.diag(expected), atol=1e-12)
    np.testing.assert_allclose(cross, reference.cross(x, y, cut, k, weights), atol=1e-12)
    np.testing.assert_allclose(inducing, reference.inducing_cross(z, x, cut, k, weights), atol=1e-12)
    np.testing.assert_allclose(kernel.grid.patches(jnp.asarray(x))[1], cut(x[1]))
    np.testing.assert_allclose(Kuu(Patches(z), kernel).to_dense()[0], [[k(a, b) for b in z] for a in z], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "max_entries", [pytest.param(1, marks=pytest.mark.slow), 40, pytest.param(200, marks=pytest.mark.slow)]
)
def test_chunks_change_nothing(max_entries, rng, monkeypatch):
    kernel, images, z, *_ = _setting("weighted", rng)
    x, z = jnp.asarray(images), jnp.asarray(z)

    def value_and_gradient(x):
        def total(kernel, z, x):
            _, cross, diag, inducing = _evaluate.__wrapped__(kernel, z, x, x[:2] + 0.1)
            return jnp.sum(jnp.sin(cross)) + jnp.sum(jnp.sin(diag)) + jnp.sum(jnp.sin(inducing))

        return eqx.filter_jit(eqx.filter_value_and_grad(lambda kzx: total(*kzx)))((kernel, z, x))

    whole = value_and_gradient(x)
    monkeypatch.setattr("dgpax.kernels._convolutional.MAX_ENTRIES", max_entries)
    monkeypatch.setattr(_chunks, "MAX_ENTRIES", max_entries)
    for part, expected in zip(jax.tree.leaves(value_and_gradient(x)), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-11, atol=1e-12)


def test_white_noise_of_the_patch_response_is_averaged(rng):
    x = jnp.asarray(rng.normal(size=(3, 12)))
    noisy, plain = (Convolutional(base, (4, 3), (3, 1)) for base in (RBF() + White(0.6), RBF()))
    evaluate = eqx.filter_jit(lambda kernel, x: (kernel.gram(x), kernel.cross(x, x)))
    (gram, cross), (plain_gram, plain_cross) = evaluate(noisy, x), evaluate(plain, x)
    np.testing.assert_allclose(gram - plain_gram, 0.1 * np.eye(3), atol=1e-12)
    np.testing.assert_allclose(cross, plain_cross, atol=1e-12)


def test_one_patch_is_the_base_kernel(rng):
    x = jnp.asarray(rng.normal(size=(3, 12)))
    base = Matern32(0.7)
    np.testing.assert_allclose(Convolutional(base, (4, 3), (4, 3)).gram(x), base.gram(x), atol=1e-13)


def _largest_array(function, *arguments) -> int:
    def sizes(jaxpr):
        for equation in jaxpr.eqns:
            yield from (variable.aval.size for variable in equation.outvars)
            for leaf in jax.tree.leaves(equation.params, is_leaf=lambda p: isinstance(p, ClosedJaxpr | Jaxpr)):
                if isinstance(leaf, ClosedJaxpr | Jaxpr):
                    yield from sizes(leaf.jaxpr if isinstance(leaf, ClosedJaxpr) else leaf)

    return max(sizes(jax.make_jaxpr(function)(*arguments).jaxpr))


def test_no_array_of_all_pairs_of_patches_is_made(rng):
    B, M, base = 5, 7, RBF()
    kernel = Convolutional(base, (18, 18), (3, 3))
    P = kernel.grid.num_patches
    x, z = jnp.asarray(rng.normal(size=(B, 324))), jnp.asarray(rng.normal(size=(M, 9)))
    assert _largest_array(lambda x: base.gram(kernel.grid.patches(x)), x) >= B * P * P  # it would be seen

    def variance(lengthscale, x):
        return jnp.sum(Convolutional(RBF(lengthscale), (18, 18), (3, 3)).diag(x))

    for function in (variance, jax.grad(variance, argnums=(0, 1))):
        assert _largest_array(function, jnp.asarray(1.0), x) < B * P * P / 4
    assert _largest_array(lambda z: jnp.sum(Kuf(Patches(z), kernel, x[None])), z) <= B * P * max(M, 9)
    memory: Any = jax.jit(jax.grad(variance)).lower(jnp.asarray(1.0), x).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 8 * B * P * P / 2


@pytest.mark.slow
@pytest.mark.parametrize("base", [pytest.param(RBF(), id="RBF"), pytest.param(Matern32(), id="Matern32")])
def test_float32_and_finite_gradients_where_patches_coincide(base, rng):
    kernel = cast(Convolutional(base, (4, 4), (2, 2), weights=1.0, position=RBF(3.0)), jnp.float32)
    x = jnp.asarray(rng.integers(0, 2, size=(3, 16)), jnp.float32).at[0].set(0.0)
    inducing = Patches(kernel.grid.patches(x)[1, :4])

    def total(kernel, inducing, x):
        uu, uf = Kuu(inducing, kernel).to_dense(), Kuf(inducing, kernel, x[None])
        return jnp.sum(kernel.diag(x)) + jnp.sum(uf) + jnp.sum(uu)

    value_and_gradient = eqx.filter_jit(eqx.filter_value_and_grad(lambda all_of: total(*all_of)))
    value, gradient = value_and_gradient((kernel, inducing, x))
    exact, _ = value_and_gradient(cast((kernel, inducing, x), jnp.float64))
    assert value.dtype == jnp.float32
    np.testing.assert_allclose(value, exact, rtol=1e-5)
    for leaf in jax.tree.leaves(gradient):
        assert leaf.dtype == jnp.float32 and bool(jnp.all(jnp.isfinite(leaf)))


def test_patches_are_drawn_from_images_and_distinct(rng):
    images = rng.integers(0, 2, size=(30, 16)).astype(float)
    kernel = Convolutional(RBF(), (4, 4), (2, 2))
    every = {tuple(patch) for image in images for patch in reference.patches(image, (4, 4), (2, 2))}
    for choice in ("random", "variance"):
        inducing = Patches.from_images(kernel, images, 10, choice=choice)
        rows = {tuple(patch) for patch in np.asarray(inducing.locations)}
        assert inducing.num_inducing == len(rows) == 10 and rows <= every
    with pytest.warns(DgpaxWarning, match="16 distinct"):
        assert Patches.from_images(kernel, images, 20).num_inducing == len(every) == 16
    with pytest.raises(UnknownNameError, match="random, variance"):
        Patches.from_images(kernel, images, 3, choice="best")


def _image_layer(rng, num_channels=2, num_inducing=5):
    """A layer from 3 x 4 images of 2 channels to 2 x 3 images, a posterior, and images."""
    base = RBF(jnp.asarray([[0.9], [1.4]]), jnp.asarray([1.0, 2.0])) if num_channels == 2 else RBF(1.2)
    kernel = ImageToImage(base, (3, 4, 2), (2, 2), num_channels)
    z = rng.normal(size=(num_inducing, 8))
    mean = Linear(fixed(kernel.grid.centre_map(num_channels)), 0.3)
    layer = GPLayer(kernel, kernel.num_outputs, mean, Patches(z))
    root = 0.3 * np.tril(rng.normal(size=(num_channels, num_inducing, num_inducing)))
    posterior = MeanField((GaussianBlock(rng.normal(size=(num_channels, num_inducing)), root),))
    return layer, posterior, rng.normal(size=(3, 24))


def _by_loops(layer, posterior, x):
    """Mean [N, P, C] and covariance [C, N·P, N·P] of the responses to all patches, without the layer's mean."""
    kernel, block = layer.kernel, posterior.blocks[0]
    rows = np.concatenate([reference.patches(image, (3, 4, 2), (2, 2)) for image in x])
    z, C = np.asarray(layer.inducing.locations), kernel.num_channels
    means, covariances = [], []
    for c in range(C):
        parameters = [np.broadcast_to(np.ravel(p), C)[c] for p in (kernel.base.lengthscale, kernel.base.variance)]

        def K(a, b, parameters=parameters):
            return np.array([[reference.rbf(p, q, *parameters) for q in b] for p in a])

        q = reference.conditional(K(z, z), K(z, rows), K(rows, rows), block.mean.value[c], block.root.value[c])
        means.append(q[0].reshape(len(x), -1))
        covariances.append(q[1])
    return np.stack(means, -1), np.stack(covariances)


@pytest.mark.parametrize("num_channels", [1, 2, 3])
def test_the_four_covariances_of_image_to_image_agree_with_loops(num_channels, rng):
    layer, posterior, x = _image_layer(rng, num_channels)
    mean, covariance = _by_loops(layer, posterior, x)
    N, P, C = mean.shape
    centres = x.reshape(3, 3, 4, 2)[:, 1:, 1:, np.arange(C) % 2]
    mean = mean.reshape(N, P * C) + centres.reshape(N, P * C) + 0.3
    full = np.einsum("cnpmq,cd->npcmqd", covariance.reshape(C, N, P, N, P), np.eye(C)).reshape(N, P * C, N, P * C)

    @eqx.filter_jit
    def evaluate(layer, posterior, x):
        carry = posterior.begin((layer,))
        outputs = outputs_of(0, layer, posterior, x, carry)
        return [outputs.marginal(), outputs.over_inputs(), outputs.over_outputs(), outputs.over_both()]

    results: list[Any] = evaluate(layer, posterior, jnp.asarray(x))
    for result in results:
        np.testing.assert_allclose(result.mean, mean, atol=1e-10)
    np.testing.assert_allclose(results[0].variance, np.einsum("npnp->np", full), atol=1e-10)
    np.testing.assert_allclose(results[1].covariance, np.einsum("npmp->pnm", full), atol=1e-10)
    np.testing.assert_allclose(results[2].covariance, np.einsum("npnq->npq", full), atol=1e-10)
    np.testing.assert_allclose(results[3].covariance, full, atol=1e-10)


def test_the_prior_of_image_to_image_is_a_multi_output_kernel(rng):
    layer, _, x = _image_layer(rng)
    kernel: Any = layer.kernel
    rows, P, N = jnp.asarray(x)[None], kernel.num_outputs, 3
    evaluate = eqx.filter_jit(lambda kernel, x: (kernel.cross(x, x), kernel.diag(x), kernel.over_outputs(x)))
    cross, diag, over_outputs = (np.asarray(part) for part in evaluate(kernel, rows))
    assert cross.shape == (P, N, P, N) and kernel.output_shape == (2, 3, 2)
    assert np.linalg.eigvalsh(cross.reshape(P * N, P * N)).min() > -1e-10
    np.testing.assert_allclose(diag, np.einsum("pnpn->pn", cross), atol=1e-12)
    np.testing.assert_allclose(over_outputs, np.einsum("pnqn->npq", cross), atol=1e-12)


def test_draws_of_an_inner_image_have_its_mean_and_the_covariance_of_its_inducing_outputs(rng, key):
    """Moments of 20,000 draws within 4.5 standard errors: 12 + 78 numbers, so one seed in 1,600 fails."""
    layer, posterior, x = _image_layer(rng)
    x, num_draws = x[:1], 20_000
    noise = draw_noise((layer, layer), key, num_draws, 1, jnp.result_type(float))[0]
    drawn = eqx.filter_jit(
        lambda noise: outputs_of(0, layer, posterior, jnp.asarray(x), posterior.begin((layer,))).draw(noise)
    )
    draws = np.asarray(drawn(noise)[0])[:, 0]
    mean, _ = _by_loops(layer, posterior, x)
    mean = mean.reshape(-1) + np.asarray(layer.mean(jnp.asarray(x)))[0]
    covariance = _covariance_of_draws(layer, posterior, x)
    variance = np.diag(covariance)
    assert np.all(np.abs(draws.mean(0) - mean) < 4.5 * np.sqrt(variance / num_draws))
    error = np.sqrt((np.outer(variance, variance) + covariance**2) / num_draws)
    assert np.all(np.abs(np.cov(draws.T) - covariance) < 4.5 * error)


def _covariance_of_draws(layer, posterior, x):
    """A R Rᵀ Aᵀ between the patches of an image, and all of the variance at each; channels are independent."""
    block, C = posterior.blocks[0], layer.kernel.num_channels
    _, covariance = _by_loops(layer, posterior, x)
    certain = MeanField((GaussianBlock(block.mean.value, jnp.zeros_like(block.root.value)),))
    _, residual = _by_loops(layer, certain, x)
    shared = covariance - residual + np.stack([np.diag(np.diag(part)) for part in residual])
    P = shared.shape[-1]
    return np.einsum("cpq,cd->pcqd", shared, np.eye(C)).reshape(P * C, P * C)


def _stripes(rng, num_images):
    """6 x 6 images with one horizontal (0) or vertical (1) bar of three pixels, and a little noise."""
    images, labels = 0.1 * rng.normal(size=(num_images, 6, 6)), rng.integers(0, 2, size=num_images)
    for image, label in zip(images, labels, strict=True):
        row, column = rng.integers(0, 4, size=2)
        bar = image[row : row + 3, column : column + 1] if label else image[row : row + 1, column : column + 3]
        bar += 1.0
    return dgpax.dataset(images.reshape(num_images, 36), labels.astype(float))


@pytest.mark.slow
def test_a_convolutional_gp_learns_what_does_not_depend_on_the_place(rng):
    train, test = _stripes(rng, 60), _stripes(rng, 200)
    kernel = Convolutional(RBF(1.0, 300.0), (6, 6), (3, 3))
    model = DeepGP(GPLayer(kernel, inducing=Patches.from_images(kernel, train.x, 30)), BernoulliProbit())
    fitted = dgpax.fit(model, train, "variational", engine=NaturalGradient(max_steps=200))
    probabilities = dgpax.prediction.class_probabilities(fitted, test.x)
    assert dgpax.metrics.accuracy(test.y, probabilities) > 0.95


def _deep(train, num_channels=2):
    first = ImageToImage(RBF(1.5), (6, 6), (3, 3), num_channels)
    mean = Linear(fixed(first.grid.centre_map(num_channels)), fixed(0.0))
    second = Convolutional(RBF(1.5, 100.0), first.output_shape, (2, 2), weights=1.0)
    return DeepGP(
        (
            GPLayer(first, first.num_outputs, mean, Patches.from_images(first, train.x, 12)),
            GPLayer(second, 1, inducing=Patches.from_images(second, mean(train.x), 12)),
        ),
        BernoulliProbit(),
    )


@pytest.mark.slow
def test_the_bound_of_a_deep_convolutional_model_rises(rng):
    train = _stripes(rng, 40)
    engine = NaturalGradient(max_steps=100)
    fitted = dgpax.fit(_deep(train), InMemory(train, 20), "variational", engine=engine)
    history = fitted.report.history
    assert history.shape == (100,) and fitted.report.rejected_steps == 0
    assert np.mean(history[-20:]) > np.mean(history[:20]) + 5.0
    probabilities = dgpax.prediction.class_probabilities(fitted, train.x, num_samples=5)
    assert dgpax.metrics.accuracy(train.y, probabilities) > 0.8


@pytest.mark.parametrize(
    "message, action",
    [
        ("larger than the image", lambda: Convolutional(RBF(), (4, 4), (5, 2))),
        ("image_shape must be", lambda: Convolutional(RBF(), (16,), (2, 2))),
        ("patch_shape must be", lambda: Convolutional(RBF(), (4, 4), (2, 2, 1))),
        ("stride must be", lambda: PatchGrid((4, 4), (2, 2), 0)),
        ("each of the 9 patches", lambda: Convolutional(RBF(), (4, 4), (2, 2), weights=jnp.ones(4))),
        ("have 16 numbers, but the input has 12", lambda: Convolutional(RBF(), (4, 4), (2, 2)).diag(jnp.ones((2, 12)))),
        ("patches have 4 numbers", lambda: Kuu(Patches(jnp.ones((3, 5))), Convolutional(RBF(), (4, 4), (2, 2)))),
        ("don't belong to RBF on 16", lambda: Kuf(Patches(jnp.ones((3, 4))), RBF(), jnp.ones((1, 2, 16)))),
        ("from_images", lambda: Patches(jnp.ones(4))),
        ("at least 1; got 0", lambda: ImageToImage(RBF(), (4, 4), (2, 2), 0)),
        ("num_outputs=18", lambda: GPLayer(ImageToImage(RBF(), (4, 4), (2, 2), 2), 9)),
    ],
)
def test_bad_input_is_explained(message, action):
    with pytest.raises(InputError, match=message):
        action()


def test_whole_images_can_be_inducing_points(rng):
    kernel, x = Convolutional(RBF(), (4, 3), (3, 1)), jnp.asarray(rng.normal(size=(4, 12)))
    np.testing.assert_allclose(Kuf(Points(x[:2]), kernel, x[None])[0], kernel.cross(x[:2], x), atol=1e-13)
