"""What most ways of inference leave: a model and its posterior."""

from __future__ import annotations

import equinox as eqx

from ..model import DeepGP
from ..posteriors import AbstractPosterior
from ._report import FitReport


class Fit(eqx.Module):
    """A fitted model: the prior at its trained values, the posterior, and what happened.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    >>> fitted.num_inputs, fitted.report.num_rows
    (1, 20)
    >>> noise_variance = float(fitted.model.likelihood.noise_variance.value)
    """

    model: DeepGP
    posterior: AbstractPosterior
    report: FitReport = eqx.field(static=True)
    num_inputs: int = eqx.field(static=True)
    input_names: tuple[str, ...] = eqx.field(static=True)
