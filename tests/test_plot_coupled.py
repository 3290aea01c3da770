"""Pictures and numbers of what coupled posteriors hold, against NumPy."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from parts import fit_of

from dgpax import DeepGP, GPLayer, dataset, plot
from dgpax.distributions import Gaussian
from dgpax.errors import InputTypeError
from dgpax.inducing import Points
from dgpax.inference import FitReport
from dgpax.kernels import RBF
from dgpax.layers import AbstractLayer, Append
from dgpax.likelihoods import GaussianNoise
from dgpax.means import Identity
from dgpax.posteriors import Chain, Coupled, MeanField, Particles, PointsAsLocations
from dgpax.prediction import inducing_covariance, layer_correlations

matplotlib.use("Agg")

SIZES = (4, 4, 4, 3, 3, 5)
"""Of every process: three outputs, two, one, with different numbers of inducing points."""
LAYER = np.repeat([0, 2, 3], [12, 6, 5])


@pytest.fixture(scope="module")
def layers():
    rng = np.random.default_rng(0)
    return (
        GPLayer(RBF(1.0), 3, Identity(), Points(rng.normal(size=(4, 3)))),
        Append(),
        GPLayer(RBF(1.0), 2, inducing=Points(rng.normal(size=(3, 6)))),
        GPLayer(RBF(1.0), 1, inducing=Points(rng.normal(size=(5, 2)))),
    )


def _fit(layers, posterior) -> Any:
    """Nobody trained it."""
    empty = {
        "dict[str, Any]": {},
        "str": "",
        "tuple[str, ...]": (),
        "tuple[int, ...]": (),
        "bool": False,
        "int": 0,
        "float": 0.0,
    }
    report = FitReport(**{f.name: empty.get(str(f.type), np.zeros(1)) for f in dataclasses.fields(FitReport)})
    return fit_of(DeepGP(layers, GaussianNoise(0.1)), posterior, report, 3)


def _moved(posterior):
    """Every array away from where it starts; triangular parameters ignore what is above their diagonal."""
    rng = np.random.default_rng(1)
    return jax.tree.map(lambda a: a + 0.3 * rng.normal(size=a.shape) if eqx.is_inexact_array(a) else a, posterior)


def _coupled_covariance(posterior: Coupled) -> np.ndarray:
    """RRᵀ, of a dense R put together block by block and cut where a layer has no further inducing outputs."""
    q = posterior.outputs
    n, M = q.mean.shape
    R = np.zeros((n * M, n * M))
    for (i, j), block in zip(q.pattern.pairs, np.asarray(q.blocks()), strict=True):
        R[i * M : (i + 1) * M, j * M : (j + 1) * M] = block
    there = np.concatenate([np.arange(M) < size for size in SIZES])
    return (R @ R.T)[np.ix_(there, there)]


def _root_mean_square(correlations: np.ndarray) -> np.ndarray:
    """One pair of layers after the other."""
    found = np.zeros((3, 3))
    for a, one in enumerate(np.unique(LAYER)):
        for b, other in enumerate(np.unique(LAYER)):
            part = correlations[np.ix_(one == LAYER, other == LAYER)]
            found[a, b] = np.sqrt(np.mean((part[~np.eye(len(part), dtype=bool)] if a == b else part) ** 2))
    return found


@pytest.mark.parametrize("word", ["layer-wise", "stripes-and-arrow"])
def test_coupled_against_dense_matrices(word, layers):
    fitted = _fit(layers, _moved(Coupled.at_prior(layers, word, inner_scale=0.3)))
    S = _coupled_covariance(fitted.posterior)
    covariance, layer, process = inducing_covariance(fitted)
    assert_allclose(covariance, S, rtol=0, atol=1e-13)
    assert_array_equal(layer, LAYER)
    assert_array_equal(process, np.repeat([0, 1, 2, 0, 1, 0], SIZES))
    deviation = np.sqrt(np.diag(S))
    expected = _root_mean_square(S / np.outer(deviation, deviation))
    found = layer_correlations(fitted)
    assert_allclose(found, expected, rtol=0, atol=1e-13)
    between = found[~np.eye(3, dtype=bool)]
    assert np.all(between == 0) if word == "layer-wise" else np.all(between > 0.01)


def test_mean_field_and_chain(layers):
    mean_field = _fit(layers, _moved(MeanField.at_prior(layers, inner_scale=0.3)))
    roots = [
        np.asarray(root) for block in mean_field.posterior.blocks if block is not None for root in block.root.value
    ]
    own = inducing_covariance(mean_field).covariance
    assert np.all(layer_correlations(mean_field)[np.tril_indices(3, -1)] == 0)
    ends = np.cumsum(SIZES)
    for root, end in zip(roots, ends, strict=True):
        part = slice(end - len(root), end)
        assert_allclose(own[part, part], root @ root.T, rtol=0, atol=1e-14)
        own[part, part] = 0
    assert np.all(own == 0)

    chain = _fit(layers, _moved(Chain.at_prior(layers, inner_scale=0.3)))
    n, M = chain.posterior.outputs.mean.shape
    R = np.asarray(chain.posterior.outputs.apply(jnp.eye(n * M).reshape(n, M, n * M))).reshape(n * M, n * M)
    there = np.concatenate([np.arange(M) < size for size in SIZES])
    assert_allclose(inducing_covariance(chain).covariance, (R @ R.T)[np.ix_(there, there)], rtol=0, atol=1e-13)
    assert np.all(layer_correlations(chain)[np.tril_indices(3, -1)] > 0.01)


class Around(AbstractLayer):
    """f(h) + h."""

    gp: GPLayer

    def apply(self, given, draw):
        return given.last + draw(given.last)

    @property
    def random(self):
        return self.gp


def test_gps_inside_layers_from_outside(layers):
    posterior = _moved(Coupled.at_prior(layers, "fully-coupled", inner_scale=0.3))
    fits = [_fit(own, posterior) for own in (layers, (Around(layers[0]), *layers[1:]))]
    for plain, inside in zip(*map(inducing_covariance, fits), strict=True):
        assert_array_equal(inside, plain)


def test_draws_and_what_has_no_covariance(layers):
    rng = np.random.default_rng(2)
    v = [rng.normal(size=(30, width, size)) for width, size in ((3, 4), (2, 3), (1, 5))]
    draws = Particles((jnp.asarray(v[0]), None, jnp.asarray(v[1]), jnp.asarray(v[2])))
    expected = np.cov(np.concatenate([block.reshape(30, -1) for block in v], axis=1), rowvar=False)
    assert_allclose(inducing_covariance(_fit(layers, draws)).covariance, expected, rtol=0, atol=1e-13)
    z = np.linspace(-1, 1, 4)[:, None]
    plain = (GPLayer(RBF(), 1, Identity(), Points(z)), GPLayer(RBF(), 1, inducing=Points(z)))
    with pytest.raises(InputTypeError, match="PointsAsLocations"):
        layer_correlations(_fit(plain, PointsAsLocations.at_prior(plain)))


def test_the_covariance_picture(layers):
    fitted = _fit(layers, _moved(Coupled.at_prior(layers, "stripes-and-arrow", inner_scale=0.3)))
    ax = plot.covariance_blocks(fitted)
    shown: Any = ax.images[0].get_array()
    S = _coupled_covariance(fitted.posterior)
    assert_array_equal(shown.mask, S == 0)
    assert_allclose(shown.compressed(), np.log10(np.abs(S[S != 0])), rtol=0, atol=1e-10)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["layer 0", "layer 2", "layer 3"]
    thick = {np.asarray(line.get_xdata())[0] for line in ax.lines if line.get_color() == "black"}
    assert {11.5, 17.5} <= thick


def test_uncertainty_over_distance():
    x = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    train = dataset(x, np.zeros((2, 1)))
    test = dataset(np.array([[3.0, 0, 0], [0.0, 0.5, 0], [1.0, 0, 0]]), np.zeros((3, 1)))
    layers = (GPLayer(RBF(1.0), 1, inducing=Points(x)),)
    narrow = eqx.tree_at(lambda p: p.blocks[0].root.raw, MeanField.at_prior(layers), replace_fn=lambda raw: 1e-3 * raw)
    ax = plot.variance_by_distance(_fit(layers, narrow), train, test, num_bins=3, label="one layer")
    distance, deviation = np.transpose(ax.lines[0].get_xydata())
    assert_allclose(distance, [0.0, 0.5, 2.0], atol=1e-12)
    assert np.all(np.diff(deviation) > 0.01)
    assert len(np.asarray(ax.collections[0].get_offsets())) == 3


def test_errors_over_variance():
    variance = jnp.array([[4.0], [1.0], [3.0], [2.0], [9.0]])
    y = np.array([[2.0], [1.0], [-1.0], [3.0], [np.nan]])
    ax = plot.error_by_variance(y, Gaussian(jnp.zeros((5, 1)), variance), num_bins=2)
    assert plot.error_by_variance(y, Gaussian(jnp.ones((5, 1)), variance), num_bins=2, ax=ax) is ax
    means = np.asarray(ax.lines[1].get_xydata())
    assert_allclose(means, [[1.5, 5.0], [3.5, 2.5]])
