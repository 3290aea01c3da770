"""GPyTorch in the steps benchmark: `python gpytorch_steps.py problem.npz answer.json`, in its own interpreter.

Written like the tutorial on deep GPs. `DeepGPLayer` repeats its inputs for every output, so that kernel matrices and
Cholesky factors are computed once per output although the parameters are shared.
"""

from __future__ import annotations

import platform
import sys

import gpytorch
import numpy as np
import torch
from _timing import answered, timed
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.mlls import DeepApproximateMLL, VariationalELBO
from gpytorch.models.deep_gps import DeepGP, DeepGPLayer
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Identity(gpytorch.means.Mean):
    """Output p is column p; the inputs [..., P, N, D] come repeated for every output."""

    def forward(self, x):
        return torch.diagonal(x, dim1=-3, dim2=-1).mT


class Layer(DeepGPLayer):
    def __init__(self, given, output_dims: int | None):
        num_inducing, width = given["locations"].shape
        batch_shape = torch.Size([] if output_dims is None else [output_dims])
        distribution = CholeskyVariationalDistribution(num_inducing, batch_shape, mean_init_std=0.0)
        locations = torch.tensor(given["locations"])
        super().__init__(VariationalStrategy(self, locations, distribution), width, output_dims)
        self.variational_strategy.variational_params_initialized.fill_(1)
        if output_dims is not None:
            distribution.chol_variational_covar.data.mul_(float(given["inner_scale"]))
        self.mean_module = gpytorch.means.ZeroMean() if output_dims is None else Identity()
        self.covar_module = ScaleKernel(RBFKernel(ard_num_dims=width))
        self.covar_module.outputscale = float(given["variance"])
        self.covar_module.base_kernel.lengthscale = float(given["lengthscale"])

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Model(DeepGP):
    def __init__(self, given):
        super().__init__()
        width, num_inner = given["x"].shape[1], int(given["num_layers"]) - 1
        self.layers = torch.nn.ModuleList([*(Layer(given, width) for _ in range(num_inner)), Layer(given, None)])
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()
        self.likelihood.noise = float(given["noise_variance"])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def main(problem: str, answer: str) -> None:
    given = np.load(problem)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    x, y = torch.tensor(given["x"]).to(DEVICE), torch.tensor(given["y"][:, 0]).to(DEVICE)
    model = Model(given).to(DEVICE)
    model.train()
    optimiser = torch.optim.Adam(model.parameters(), lr=float(given["rate"]))
    bound = DeepApproximateMLL(VariationalELBO(model.likelihood, model, num_data=len(x)))

    def step():
        with gpytorch.settings.num_likelihood_samples(1):
            optimiser.zero_grad()
            loss = -bound(model(x), y)
            loss.backward()
            optimiser.step()
        return -loss.detach()

    synchronise = torch.cuda.synchronize if DEVICE.type == "cuda" else lambda: None
    result = timed(step, synchronise, int(given["num_runs"]), int(given["steps"]))
    versions = {"gpytorch": gpytorch.__version__, "torch": torch.__version__}
    versions |= {"numpy": np.__version__, "python": platform.python_version()}
    answered(answer, result | {"device": "gpu" if DEVICE.type == "cuda" else "cpu", "versions": versions})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
