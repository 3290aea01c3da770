"""Predictions at new inputs, in the units of the raw data, for whatever inferred the model.

A model with one layer has a Gaussian prediction. Behind inner layers it is a mixture over their samples, and that of an
ensemble one over its parts: exact moments, quantiles and densities of the mixture, never one sampled path and never an
average of variances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..distributions import (
    AbstractDistribution,
    AbstractJointGaussian,
    Gaussian,
    GaussianOverOutputs,
    JointMixture,
    Mixture,
)
from ..errors import InputError
from ..fits import AbstractFit, in_units_of, pooled
from ..model import DeepGP
from ..programs import compiled
from ._rows import by_chunks

MAX_JOINT_BYTES = 4 * 2**30


def predict(fitted: AbstractFit, x, *, num_samples: int = 100, seed: int = 0) -> AbstractDistribution:
    """The distribution of new observations y at the rows of x, noise included.

    `num_samples` and `seed` are for models with inner layers; all rows share the samples, so that a row's prediction
    doesn't depend on the rows beside it and is smooth in x. It is the distribution of every row and output by itself:
    for rows together there are `predict_jointly`, `sample_jointly` and `draw_functions`. For likelihoods whose
    predictions aren't mixtures of Gaussians there are `predict_moments`, `predict_quantiles`, `log_density` and
    `class_probabilities`.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    >>> prediction = dgpax.predict(fitted, [[0.25], [0.5]])
    >>> prediction.mean.shape
    (2, 1)
    >>> low, high = prediction.interval(0.9)
    >>> bool((low < prediction.mean).all() and (prediction.mean < high).all())
    True
    """

    def of_part(f, rows):
        return components(f.model, f.for_expectation())

    answers = by_chunks(fitted, x, num_samples, seed, of_part, _all_of_them)
    for (_, part), q in zip(fitted.parts, answers, strict=True):
        if q is None:
            raise InputError(
                f"predict() gives Gaussians and mixtures of them, which {type(part.model.likelihood).__name__} doesn't "
                "have. Use predict_moments, predict_quantiles, log_density or class_probabilities."
            )
    return fitted.model.to_raw_units(mixture_of_parts(fitted, answers))


def predict_latent(fitted: AbstractFit, x, *, num_samples: int = 100, seed: int = 0) -> AbstractDistribution:
    """The distribution of the noise-free function f at the rows of x.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    >>> new = [[0.25], [0.5]]
    >>> noise_free, noisy = dgpax.predict_latent(fitted, new), dgpax.predict(fitted, new)
    >>> bool((noise_free.stddev < noisy.stddev).all())
    True
    """
    answers = by_chunks(fitted, x, num_samples, seed, lambda f, rows: f.marginal(), _all_of_them)
    return fitted.model.to_raw_units(mixture_of_parts(fitted, answers))


def predict_jointly(
    fitted: AbstractFit, x, over: str = "inputs", *, num_samples: int = 100, seed: int = 0
) -> AbstractJointGaussian | JointMixture:
    """As `predict_latent`, with the covariance between all rows ("inputs"), between the outputs of a row ("outputs"),
    or "both". Over the inputs it takes O(N²) memory, behind inner layers for every sample: it is a mixture there.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    >>> dgpax.predict_jointly(fitted, [[0.25], [0.5]]).covariance.shape
    (1, 2, 2)
    """
    inputs, P = fitted.inputs(x), fitted.model.layers[-1].num_outputs
    entries = {"inputs": P * len(inputs) ** 2, "outputs": len(inputs) * P**2, "both": (len(inputs) * P) ** 2}
    samples = sum(num_samples if len(part.model.layers) > 1 else 1 for _, part in fitted.parts)
    needed = 3 * samples * entries.get(over, 0) * inputs.dtype.itemsize
    if needed > MAX_JOINT_BYTES:
        raise MemoryError(
            f"The covariance over {over} of {len(inputs)} rows would need about {needed / 2**30:.1f} GiB. "
            "Use predict() for the variances, or fewer rows or samples."
        )
    answers = []
    for _, part in fitted.parts:
        own = part.latent_jointly(part.inputs(x), over, num_samples=num_samples, seed=seed)
        answers.append(GaussianOverOutputs.of(own) if isinstance(own, Gaussian) else own)
    return fitted.model.joint_to_raw_units(_pooled(fitted, answers, JointMixture))


@compiled
def components(model: DeepGP, q: Gaussian | GaussianOverOutputs) -> Gaussian | None:
    """Those of new observations, in the model's units, if their distribution is a mixture of Gaussians."""
    return model.likelihood.components(q)


def mixture_of_parts(fitted: AbstractFit, answers: Sequence[Gaussian]) -> Gaussian | Mixture:
    """The distribution in the units of the fit's model, from what its parts say in their own."""
    return _pooled(fitted, answers, Mixture)


def _pooled(fitted: AbstractFit, answers: Sequence, mixture: Callable):
    """A single Gaussian stays one; components of one part keep their equal weights."""
    if len(answers) == 1:
        return answers[0] if answers[0].mean.ndim == 2 else mixture(answers[0])
    pairs = zip(fitted.parts, answers, strict=True)
    return mixture(*pooled([(weight, in_units_of(fitted.model, part.model, q)) for (weight, part), q in pairs]))


def _all_of_them(weights: np.ndarray, answers: list) -> tuple:
    return tuple(answers)
