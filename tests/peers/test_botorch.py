"""BoTorch's own acquisition functions and optimisers run on a deep GP. Run by an interpreter that has both."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from dgpax.recipes import Recipe, Rows, train

torch = pytest.importorskip("torch")
pytest.importorskip("botorch")

pytestmark = [
    pytest.mark.peers,
    pytest.mark.filterwarnings("default"),
]


START = np.linspace(0.0, 1.0, 10)[:, None]


def objective(x):
    """Its largest value on [0, 1] is at 0.7."""
    return -((x - 0.7) ** 2) * 10.0 + np.tanh(20.0 * (x - 0.3))


def fit_of(x):
    return train(Recipe(num_layers=2, max_steps=300, progress=False), Rows(x, objective(x)))


@pytest.fixture(scope="module")
def fitted():
    return fit_of(START)


@pytest.fixture(scope="module")
def model(fitted):
    from dgpax.interop.botorch import as_model

    return as_model(fitted, num_features=256)


def test_the_posterior_has_the_moments_of_the_functions(fitted, model):
    x = np.random.default_rng(0).random((3, 2, 1))
    posterior = model.posterior(torch.as_tensor(x))
    values = np.asarray(fitted.functions(128, seed=0, num_features=256)(jnp.asarray(x.reshape(-1, 1))))
    assert posterior.mean.shape == (3, 2, 1)
    np.testing.assert_allclose(posterior.mean.numpy().reshape(-1), values.mean(axis=0)[:, 0], rtol=1e-8)


def test_slopes_are_those_of_differences(model):
    x = torch.full((1, 1, 1), 0.4, dtype=torch.double, requires_grad=True)
    model.posterior(x).mean.sum().backward()
    h = 1e-6
    with torch.no_grad():
        up, down = (float(model.posterior(x + step).mean) for step in (h, -h))
    assert float(x.grad) == pytest.approx((up - down) / (2 * h), rel=1e-5)


def test_their_optimiser_finds_the_optimum():
    """By the best of ten runs and six that it asks for."""
    from botorch.acquisition.logei import qLogExpectedImprovement  # pyright: ignore[reportMissingImports]
    from botorch.optim import optimize_acqf  # pyright: ignore[reportMissingImports]

    from dgpax.interop.botorch import as_model

    torch.manual_seed(0)
    x, bounds = START, torch.tensor([[0.0], [1.0]], dtype=torch.double)
    for number in range(6):
        model = as_model(fit_of(x), num_features=256, seed=number)
        acquisition = qLogExpectedImprovement(model, best_f=float(objective(x).max()))
        found, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=4, raw_samples=64)
        x = np.concatenate([x, found.numpy()])
    assert abs(x[np.argmax(objective(x)), 0] - 0.7) < 1e-2
