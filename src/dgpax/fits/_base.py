"""The contract of a fitted model, whatever inferred it."""

import abc
from collections.abc import Callable

import equinox as eqx

from ..data import check_inputs
from ..distributions import AbstractJointGaussian, Gaussian
from ..errors import InputTypeError
from ..model import DeepGP
from ..parameters import COLUMNS, counted, html_table, table
from ..typing import Array, Float
from ._report import FitReport

NUM_FEATURES = 1024
"""Random frequencies of a prior function."""


def require_fit(fitted: object, what: str) -> None:
    """Raise an error that says what to do unless this is a fit."""
    if isinstance(fitted, AbstractFit):
        return
    kind = type(fitted).__name__
    advice = f"Fit it first: fitted = dgpax.fit(model, data), then {what}(fitted, ...)."
    if hasattr(fitted, "get_params"):
        advice = "Use its own predict, or what it was fitted to: estimator.fit_."
    raise InputTypeError(f"{what} takes what dgpax.fit returns; got a {kind}. {advice}")


class AbstractFit(eqx.Module):
    """What is believed about f, to be asked at any inputs, and what happened on the way to it.

    `model` has the likelihood, the scaling and the parameters at their trained values. Its own units are those of
    `latent`, `latent_jointly` and `draws`: `inputs` leads there. What they say about a row depends on that row alone
    (in `latent`), is smooth in x, and is the same for the same seed.
    """

    model: eqx.AbstractVar[DeepGP]
    report: eqx.AbstractVar[FitReport]
    num_inputs: eqx.AbstractVar[int]
    input_names: eqx.AbstractVar[tuple[str, ...]]

    def __repr__(self) -> str:
        report, depth = self.report, counted(len(self.model.layers), "layer")
        words = depth, counted(report.num_rows, "row"), f"{report.inference} by {report.engine}"
        ended = "not finished" if report.unfinished else "done"
        return f"{type(self).__name__}({', '.join(words)}, {report.seconds:.1f} s, {ended})"

    def _repr_html_(self) -> str:
        listing = table(self.model)
        advice = f". {self.report.advice}" if self.report.advice else ""
        return html_table(COLUMNS, listing.rows, f"{self!r}{advice}")

    @property
    def parts(self) -> "tuple[tuple[float, AbstractFit], ...]":
        """Weights, and the fits that predictions are mixtures of: itself alone, unless it is an ensemble."""
        return ((1.0, self),)

    def inputs(self, x) -> Float[Array, "N D"]:
        """Checked inputs, in the model's units."""
        return self.model.inputs_to_model_units(check_inputs(x, self.num_inputs, self.input_names))

    @abc.abstractmethod
    def latent(self, x: Float[Array, "N D"], *, num_samples: int, seed: int) -> Gaussian:
        """q(f) of every row and output by itself: [N, P], or the components [S, N, P] of an equal mixture."""

    @abc.abstractmethod
    def latent_jointly(
        self, x: Float[Array, "N D"], over: str, *, num_samples: int, seed: int
    ) -> Gaussian | AbstractJointGaussian:
        """The same with the covariance "outputs" (of a row), "inputs" (of an output) or "both"; a Gaussian where
        all covariances that were asked for are zero."""

    @abc.abstractmethod
    def draws(self, x: Float[Array, "N D"], num_draws: int, *, seed: int) -> Float[Array, "S N P"]:
        """Functions at these rows, jointly: equal rows have equal values within a draw."""

    @abc.abstractmethod
    def functions(
        self, num_draws: int, *, seed: int, num_features: int = NUM_FEATURES
    ) -> Callable[..., Float[Array, "S N P"]]:
        """Functions to be evaluated anywhere and later, from raw inputs to raw outputs; priors by random features."""
