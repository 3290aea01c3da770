"""Every pair (inducing variable, kernel): the joint covariance of u and f is positive semi-definite."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from dgpax.covariances import Kuf, Kuu, SharedProcesses, processes
from dgpax.errors import MissingRuleError
from dgpax.inducing import (
    AbstractInducing,
    AdditiveFourier,
    BoxIntegrals,
    Derivatives,
    DrawnPoints,
    Fourier,
    Multiscale,
    OutputPairs,
    OutputPoints,
    Patches,
    Points,
    ProductFourier,
)
from dgpax.kernels import (
    LMC,
    RBF,
    AbstractKernel,
    AbstractMultiOutputKernel,
    ActiveDimensions,
    Convolutional,
    ImageToImage,
    Matern12,
    Matern32,
    Matern52,
    ProcessConvolution,
    Product,
    Separate,
    Sum,
    White,
)

GRID, WAVES = jnp.linspace(-1, 1, 8).reshape(4, 2), Fourier(-0.8, 1.2, 2)  # some points lie outside the interval
MIXED = LMC(Separate(RBF(0.6), Matern32(0.9)), jnp.asarray([[1.0, 0.3], [-0.5, 0.8], [0.2, 1.1]]))
SMOOTHED = ProcessConvolution(0.1 * jnp.ones((2, 2)), 0.3 * jnp.eye(2), jnp.asarray([1.0, -0.7]), 0.5)

PAIRS = {
    (Points, AbstractKernel): lambda: (Points(jnp.linspace(-1, 1, 8).reshape(4, 2)), RBF(0.7) + White(0.1)),
    (DrawnPoints, AbstractKernel): lambda: (DrawnPoints(GRID[None], 0.01), Matern32(0.7)),
    (Multiscale, RBF): lambda: (Multiscale(GRID, 0.3 + GRID**2), RBF(0.7)),
    (Derivatives, AbstractKernel): lambda: (Derivatives(GRID, (0, 1, 0, 1)), Matern32(0.7) + RBF(2.0)),
    (BoxIntegrals, RBF): lambda: (BoxIntegrals(GRID, GRID + 0.5), RBF(0.7)),
    (Fourier, Matern12): lambda: (WAVES, Matern12(0.7)),
    (Fourier, Matern32): lambda: (WAVES, Matern32(0.7)),
    (Fourier, Matern52): lambda: (WAVES, Matern52(0.7)),
    (Fourier, ActiveDimensions): lambda: (WAVES, Matern52(0.7).on(0)),
    (AdditiveFourier, Sum): lambda: (AdditiveFourier([WAVES, WAVES]), Matern12(0.7).on(0) + Matern32(0.9).on(1)),
    (ProductFourier, Product): lambda: (ProductFourier([WAVES, WAVES]), Matern12(0.7).on(0) * Matern32(0.9).on(1)),
    (AbstractInducing, LMC): lambda: (Points(GRID), MIXED),
    (OutputPoints, LMC): lambda: (OutputPoints(GRID, 3), MIXED),
    (OutputPoints, AbstractMultiOutputKernel): lambda: (OutputPoints(GRID, 2), SMOOTHED),
    (OutputPairs, LMC): lambda: (OutputPairs(GRID, jnp.asarray([0, 2, 1, 0])), MIXED),
    (OutputPairs, AbstractMultiOutputKernel): lambda: (OutputPairs(GRID, jnp.asarray([0, 1, 1, 0])), SMOOTHED),
    (Points, ProcessConvolution): lambda: (Points(GRID), SMOOTHED),
    (Patches, AbstractKernel): lambda: (Patches(GRID), RBF(0.7)),
    (Patches, Convolutional): lambda: (Patches(GRID[:, :1]), Convolutional(RBF(0.7), (1, 2), (1, 1), weights=0.8)),
    (Patches, ImageToImage): lambda: (Patches(GRID[:, :1]), ImageToImage(RBF(0.7), (1, 2), (1, 1), 3)),
}


def test_every_pair_has_a_row():
    assert set(Kuu.known) == set(Kuf.known) == set(PAIRS)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: "-".join(kind.__name__ for kind in pair))
def test_schur_complement(pair, rng):
    inducing, kernel = PAIRS[pair]()
    x = jnp.asarray(rng.uniform(-1, 1, size=(6, 1 if pair[0] is Fourier else 2)))
    uu, uf = Kuu(inducing, kernel), Kuf(inducing, kernel, x[None])
    behind = processes(inducing, kernel)
    rows = behind.rows(x[None])
    assert uf.shape[-2:] == (inducing.num_inducing, rows.shape[-2]) and uu.size == inducing.num_inducing
    for dense, cross, gram in _independent_parts(uu.to_dense(), uf, behind, rows):
        joint = np.block([[dense, cross], [cross.T, gram]])
        assert np.linalg.eigvalsh(joint).min() > -1e-10


def _independent_parts(uu, uf, behind, x):
    """Kuu, Kuf and Kff of every set of inducing variables and all that depends on it."""
    if isinstance(behind, SharedProcesses):
        rows = uf.shape[0] * uf.shape[2]
        gram = np.asarray(behind.kernel.cross(x, x)).reshape(rows, rows)
        yield np.asarray(uu)[0], np.moveaxis(np.asarray(uf), 0, 1).reshape(uf.shape[1], rows), gram
    else:
        gram = behind.kernel.gram(x)
        count = max(len(uu), len(uf), len(gram))
        yield from zip(*(np.broadcast_to(part, (count, *part.shape[1:])) for part in (uu, uf, gram)), strict=True)


def test_points_are_function_values(rng):
    z, x, kernel = jnp.asarray(rng.normal(size=(3, 2))), jnp.asarray(rng.normal(size=(5, 2))), RBF(0.7, 2.0)
    np.testing.assert_allclose(Kuu(Points(z), kernel).to_dense()[0], kernel.gram(z))
    np.testing.assert_allclose(Kuf(Points(z), kernel, x[None])[0], kernel.cross(z, x))
    separate = Points(jnp.stack([z, z + 1.0]))
    assert Kuf(separate, kernel, x[None]).shape == (2, 3, 5)


class Unknown(AbstractInducing):
    """An inducing variable that no rule knows, as a newcomer would write it."""

    @property
    def num_inducing(self) -> int:
        return 1


def test_a_missing_pair_says_how_to_add_it():
    with pytest.raises(MissingRuleError) as caught:
        Kuu(Unknown(), RBF())
    message = str(caught.value)
    assert "Points, AbstractKernel" in message and "@Kuu.register(Unknown, RBF)" in message
