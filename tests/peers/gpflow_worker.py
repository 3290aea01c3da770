"""GPflow's answers: `python gpflow_worker.py cases.npz answers.npz`, in an interpreter that has gpflow.

Arrays are named "case.quantity". Every case is an SVGP with Gaussian noise and whitened inducing outputs.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import sys

import gpflow
import numpy as np

JITTER = 1e-12
COVARIANCES = {
    "marginal": (False, False),
    "over_inputs": (True, False),
    "over_outputs": (False, True),
    "over_both": (True, True),
}


def base_kernels(case):
    pairs = zip(case["variance"], case["lengthscale"], strict=True)
    return [gpflow.kernels.SquaredExponential(variance=v, lengthscales=l) for v, l in pairs]


def kernel_of(case):
    first, *rest = base_kernels(case)
    kind = str(case["kernel"])
    if kind == "single":
        return first
    if kind == "convolutional":
        return gpflow.kernels.Convolutional(first, case["image_shape"], case["patch_shape"], weights=case["weights"])
    if kind == "shared":
        return gpflow.kernels.SharedIndependent(first, case["y"].shape[1])
    if kind == "separate":
        return gpflow.kernels.SeparateIndependent([first, *rest])
    return gpflow.kernels.LinearCoregionalization([first, *rest], W=case["mixing"])


def inducing_of(case):
    variables = gpflow.inducing_variables
    kind, z = str(case["inducing"]), case["locations"]
    if kind == "points":
        return variables.InducingPoints(z)
    if kind == "multiscale":
        return variables.Multiscale(z, case["scales"])
    if kind == "patches":
        return variables.InducingPatches(z)
    if kind == "shared":
        return variables.SharedIndependentInducingVariables(variables.InducingPoints(z))
    if kind == "fallback":
        return variables.FallbackSharedIndependentInducingVariables(variables.InducingPoints(z))
    return variables.SeparateIndependentInducingVariables([variables.InducingPoints(own) for own in z])


def answer(case):
    model = gpflow.models.SVGP(
        kernel_of(case),
        gpflow.likelihoods.Gaussian(float(case["noise_variance"])),
        inducing_of(case),
        q_mu=case["mean"].T,
        q_sqrt=case["root"],
    )
    answers = {"elbo": model.elbo((case["x"], case["y"])).numpy()}
    for name, (across_inputs, across_outputs) in COVARIANCES.items():
        mean, covariance = model.predict_f(case["x_new"], full_cov=across_inputs, full_output_cov=across_outputs)
        answers |= {"mean": mean.numpy(), name: covariance.numpy()}
    return answers


def main(source: str, target: str) -> None:
    gpflow.config.set_default_jitter(JITTER)
    cases: dict[str, dict[str, np.ndarray]] = {}
    for name, value in np.load(source).items():
        case, _, quantity = name.rpartition(".")
        cases.setdefault(case, {})[quantity] = value
    answers = {case: answer(given) for case, given in cases.items()}
    np.savez(target, **{f"{case}.{name}": value for case, found in answers.items() for name, value in found.items()})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
