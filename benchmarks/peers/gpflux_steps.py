"""GPflux in the steps benchmark: `python gpflux_steps.py problem.npz answer.json`, in its own interpreter."""

from __future__ import annotations

import platform
import sys

import gpflow
import gpflux
import numpy as np
import tensorflow as tf
import tf_keras
from _timing import answered, timed
from gpflux.helpers import construct_basic_inducing_variables, construct_basic_kernel


def build(given) -> gpflux.models.DeepGP:
    """Identity means in the inner layers, none in the last; kernel and inducing points shared by a layer's outputs."""
    locations, num_layers = given["locations"], int(given["num_layers"])
    num_inducing, width = locations.shape
    layers = []
    for index in range(num_layers):
        last = index == num_layers - 1
        outputs = 1 if last else width
        kernel = gpflow.kernels.SquaredExponential(float(given["variance"]), np.full(width, given["lengthscale"]))
        layer = gpflux.layers.GPLayer(
            construct_basic_kernel(kernel, output_dim=outputs, share_hyperparams=True),
            construct_basic_inducing_variables(
                num_inducing, width, output_dim=outputs, share_variables=True, z_init=locations.copy()
            ),
            num_data=len(given["x"]),
            mean_function=gpflow.mean_functions.Zero(output_dim=1) if last else gpflow.mean_functions.Identity(width),
        )
        if not last:
            layer.q_sqrt.assign(layer.q_sqrt * float(given["inner_scale"]))
        layers.append(layer)
    likelihood = gpflow.likelihoods.Gaussian(float(given["noise_variance"]))
    return gpflux.models.DeepGP(layers, gpflux.layers.LikelihoodLayer(likelihood))


def main(problem: str, answer: str) -> None:
    given = np.load(problem)
    tf.random.set_seed(0)
    model, data = build(given), (tf.constant(given["x"]), tf.constant(given["y"]))
    variables = model.trainable_variables
    optimiser = tf_keras.optimizers.Adam(float(given["rate"]))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = -model.elbo(data) / model.num_data
        optimiser.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return -loss

    result = timed(step, variables[-1].numpy, int(given["num_runs"]), int(given["steps"]))
    versions = {"gpflux": gpflux.__version__, "gpflow": gpflow.__version__, "tensorflow": tf.__version__}
    versions |= {"numpy": np.__version__, "python": platform.python_version()}
    device = "gpu" if tf.config.list_physical_devices("GPU") else "cpu"
    answered(answer, result | {"device": device, "versions": versions})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
