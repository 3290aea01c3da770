"""Parts of a model that don't agree are refused when they meet, in words that say what to do."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import dgpax
from dgpax import DeepGP, GPLayer
from dgpax.errors import InputError, MissingRuleError
from dgpax.inducing import AdditiveFourier, Fourier, OutputPairs, OutputPoints, Points
from dgpax.inference import AbstractMethod, NaturalGradient, Variational
from dgpax.kernels import LMC, RBF, Linear, Matern32, Separate, spectral_density
from dgpax.likelihoods import GaussianNoise
from dgpax.means import Constant
from dgpax.posteriors import GaussianBlock, MeanField

P, D, M = 3, 2, 4
Z = jnp.linspace(-1, 1, M * D).reshape(M, D)
MIXED = LMC(RBF(), jnp.ones((P, 2)))


def fit(layer, inference: str | AbstractMethod = "variational", noise: float | np.ndarray = 0.1):
    rng = np.random.default_rng(0)
    data = dgpax.dataset(rng.uniform(-1, 1, size=(8, D)), rng.normal(size=(8, P)))
    engine = NaturalGradient(max_steps=1, steps_per_call=1) if inference == "variational" else None
    return dgpax.fit(DeepGP(layer, GaussianNoise(noise)), data, inference, engine=engine)


def uncovered(inference):
    kernel = Matern32().on(0) + Matern32().on(1)
    return fit(GPLayer(kernel, P, inducing=AdditiveFourier([Fourier(-2, 2, 2), Fourier(0, 2, 2)])), inference)


REFUSED = {
    "last layer has 2. Set GPLayer\\(num_outputs=3\\)": lambda: fit(GPLayer(RBF(), 2, inducing=Points(Z))),
    "kernel has 3 outputs, but the layer 2": lambda: GPLayer(MIXED, 2, inducing=Points(Z)),
    "in a layer of 3 outputs. Set num_outputs=3": lambda: GPLayer(MIXED, P, inducing=OutputPoints(Z, 2)),
    "from 0 to 2 in a layer of 3": lambda: GPLayer(MIXED, P, inducing=OutputPairs(Z, jnp.asarray([0, 1, 2, 3]))),
    "3 output\\(s\\), but .* are for 2": lambda: fit(GPLayer(RBF(jnp.ones((2, D))), P), "exact"),
    "leading axis of 3, or none": lambda: fit(GPLayer(Separate(RBF(), RBF()), P, inducing=Points(Z)), "sparse"),
    "2 latent processes, but .* are for 3": lambda: fit(GPLayer(MIXED, P, inducing=Points(jnp.stack([Z] * 3)))),
    "(?s)don't fit together.*noise_variance \\(2,\\)": lambda: fit(GPLayer(RBF(), P), "exact", np.ones(2)),
    "(?s)don't fit together.*mean.value \\(2,\\)": lambda: fit(
        GPLayer(RBF(), P, Constant(jnp.zeros(2)), Points(Z)), "sparse"
    ),
    "3 process\\(es\\) with 4": lambda: fit(
        GPLayer(RBF(), P, inducing=Points(Z)),
        Variational(MeanField([GaussianBlock(jnp.zeros((1, M)), jnp.eye(M)[None])])),
    ),
    "\\[0, 2\\] doesn't cover input column 1.*Widen": lambda: uncovered("variational"),
    "doesn't cover input column 1.*covering": lambda: uncovered("sparse"),
    "doesn't cover input column 0": lambda: fit(
        GPLayer(LMC(Matern32().on(0), jnp.ones((P, 2))), P, inducing=Fourier(0, 2, 2))
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_parts_that_do_not_agree_are_refused(words):
    with pytest.raises(InputError, match=words):
        REFUSED[words]()


@pytest.mark.parametrize("inference", ["sparse", "variational"])
def test_fourier_features_of_a_kernel_that_has_none(inference):
    with pytest.raises(MissingRuleError, match=r"(?s)no rule for \(Fourier, RBF\).*Fourier, Matern32.*Add one"):
        fit(GPLayer(RBF(), P, inducing=Fourier(-2, 2, 2)), inference)


def test_a_kernel_without_a_spectral_density():
    with pytest.raises(MissingRuleError, match=r"Linear has no spectral density.*Matern32.*register\(Linear\)"):
        spectral_density(Linear(), jnp.ones((2, 1)))
