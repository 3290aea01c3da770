"""BoTorch's SingleTaskGP with LogEI in sequential design, in its own interpreter; prints one line of JSON."""

from __future__ import annotations

import json
import sys
import time
import warnings

import botorch
import numpy as np
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.acquisition.logei import qLogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

from benchmarks._design_task import Problem

FIRST, AT_ONCE = 10, 2
"""As in benchmarks/design.py."""


def regret(function: str, seed: int, runs: int) -> float:
    """Of as many runs, the first of which are the Latin hypercube that all have."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    problem = Problem.named(function)
    x = problem.hypercube(min(FIRST, runs), seed)
    bounds = torch.tensor([[0.0] * problem.num_inputs, [1.0] * problem.num_inputs], dtype=torch.double)
    while len(x) < runs:
        y = torch.as_tensor(-problem.of(x))[:, None]
        model = SingleTaskGP(torch.as_tensor(x), y, outcome_transform=Standardize(m=1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        q = min(AT_ONCE, runs - len(x))
        kind = LogExpectedImprovement if q == 1 else qLogExpectedImprovement
        found, _ = optimize_acqf(kind(model, best_f=y.max()), bounds, q=q, num_restarts=8, raw_samples=256)
        x = np.concatenate([x, found.numpy()])
    return float(problem.of(x).min()) - problem.smallest


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    _, function, _, seed, runs = sys.argv[1:]
    began = time.process_time()
    value = regret(function, int(seed), int(runs))
    said = {"regret": value, "cpu_seconds": time.process_time() - began, "botorch": botorch.__version__}
    print(json.dumps(said))
