"""STRIDE as a method in the loop of all fits."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ..architectures._shallow import check_data
from ..data import Dataset
from ..errors import InputError, NumericalError
from ..fits import FitReport
from ..inference import METHODS, AbstractMethod, Outcome
from ..kernels import AbstractKernel
from ..likelihoods import AbstractLikelihood, GaussianNoise
from ..linalg import safe_cholesky, solve_lower
from ..objectives import AbstractTerms
from ..prediction import predict_latent
from ..programs import compiled
from ..typing import Array, Float
from ._architectures import AbstractArchitecture
from ._covariance import Stationary
from ._cross_approximation import CrossApproximation
from ._engine import START_SCALE, MonteCarloEM, StrideTarget
from ._fit import StrideFit, ended, model_of
from ._hidden import AbstractHiddenMethod, Standard
from ._initial import Initial, check_initial, initial_gp
from ._mixing import what_happened
from ._problem import Posterior, start_posterior
from ._samplers import PCN, AbstractSampler, Chains
from ._settings import Schedule
from ._top import AbstractTop, ExactTop, SampledTop, SparseTop

STANDARD_UP_TO = 5000
"""Rows whose covariance between all of them is still cheap: 200 MB."""


class StrideTerms(AbstractTerms):
    """log p(y | hidden layers), averaged over the particles."""

    log_likelihood: Float[Array, ""]
    jitter: Float[Array, ""]

    @property
    def total(self):
        return self.log_likelihood


class Stride(AbstractMethod):
    """Samples the hidden layers of a deep GP and chooses the inducing points of its top layer [STRIDE, Algorithm 1].

    In place of a model it takes an architecture: `fit(Residual(), data, Stride())`. Kernel and noise are those of a
    sparse GP that is trained first, on standardised data. A kernel and a noise variance (in raw units, fixed) can be
    given, or that GP itself in `initial`, which several fits to the same data can share. `num_inducing=None` is the
    standard deep GP: no inducing points, O(N³) a step. `hidden` says how hidden layers are made of whitened variables;
    None means Standard up to 5,000 rows, and beyond CrossApproximation, which is linear in the rows. `start_scale`,
    from 0 to 1, is how far from each other the chains start: 1 would be draws of the prior.

    With a `likelihood` other than Gaussian noise the top layer can't be integrated out and is sampled too: chains take
    longer, and the inducing points stay where they are first.
    """

    needs_all_rows: ClassVar[bool] = True

    num_inducing: int | None = eqx.field(static=True, default=50)
    num_particles: int = eqx.field(static=True, default=50)
    hidden: AbstractHiddenMethod | None = None
    sampler: AbstractSampler = PCN()
    schedule: Schedule = eqx.field(static=True, default=Schedule())
    start_scale: float = eqx.field(static=True, default=START_SCALE)
    kernel: AbstractKernel | None = None
    noise_variance: float | None = eqx.field(static=True, default=None)
    likelihood: AbstractLikelihood | None = None
    initial: Initial | None = None
    start: StrideTarget | None = None
    """Where another fit stands, from which this one goes on; `StrideFit.more` sets it."""

    def __check_init__(self):
        if self.num_particles < 1:
            raise InputError(f"Stride(num_particles=...) must be at least 1; got {self.num_particles}.")
        if not 0 <= self.start_scale <= 1:
            raise InputError(f"Stride(start_scale=...) must lie between 0 and 1; got {self.start_scale}.")
        if self.initial is not None and any(
            given is not None for given in (self.kernel, self.noise_variance, self.likelihood)
        ):
            raise InputError("initial has a kernel and noise of its own: leave kernel, noise_variance, likelihood out.")

    def check(self, model, data):
        if not isinstance(model, AbstractArchitecture):
            raise InputError(
                f"STRIDE takes an architecture of dgpax.stride (Residual(), Composition(), …) in place of a model; got "
                f"{type(model).__name__}."
            )
        check_data(data)
        data.refuse_weights("STRIDE")
        model.check(data.num_inputs)
        self._hidden(data.num_rows).check(self.num_inducing)
        if self.start is not None:
            _check_same(self.start, model, data)
        return data

    def target(self, model, data):
        if self.start is not None:
            return self.start
        hidden, initial = self._hidden(data.num_rows), self.initial or initial_gp(
            data, self.num_inducing, kernel=self.kernel, noise_variance=self.noise_variance,
            likelihood=self.likelihood, num_candidates=self.schedule.num_candidates,
        )  # fmt: skip
        check_initial(initial, data, self.num_inducing)
        scaled, top = initial.fitted.model.to_model_units(data), _top(initial)
        scaled = Dataset(scaled.x, scaled.y)
        posterior, whitened = start_posterior(model, hidden, top, scaled, initial.kernel, initial.noise_variance)
        if isinstance(top, SampledTop):
            whitened = (*whitened, _top_start(posterior, initial, data))
        log_likelihood = compiled(posterior.log_likelihood)(whitened)
        if not bool(jnp.isfinite(log_likelihood)):
            raise NumericalError("The likelihood isn't finite where the hidden layers start: raise the noise variance.")
        position, log_likelihoods = jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, (self.num_particles, *leaf.shape)), (whitened, log_likelihood)
        )
        chains = Chains(position, log_likelihoods, jnp.asarray(self.sampler.initial_scale, scaled.x.dtype))
        return StrideTarget(initial, hidden, posterior, chains, jnp.zeros((), int))

    def stages(self, target):
        """One: chains move whatever is trained."""
        return [frozenset()]

    def prepare(self, target, data):
        """Nothing: the target has the data."""
        return ()

    def terms(self, target, data, key):
        return StrideTerms(jnp.mean(target.chains.log_likelihood), target.posterior.hidden.jitter)

    def outcome(self, target, model, data, scaled):
        at_once = self.schedule.at_once(target.posterior, target.chains.num_particles)
        tops, jitter, clipped = ended(target.posterior, target.chains.position, at_once)
        details, notes = what_happened(target, self.schedule.warm_up_iterations)
        kept = target._replace(record=None)

        def make(report: FitReport) -> StrideFit:
            method = replace(self, start=None, initial=None)
            return StrideFit(  # pyright: ignore[reportCallIssue] - its model is a property
                method=method, target=kept, tops=tops, report=report, num_inputs=data.num_inputs,
                input_names=data.input_names,
            )  # fmt: skip

        return Outcome(model_of(kept), make, float(jitter), int(clipped), details, notes)

    def largest_matrix(self, model, data):
        whole = self.num_inducing is None or isinstance(self._hidden(data.num_rows), Standard)
        return data.num_rows if whole else 0

    def default_engine(self):
        return MonteCarloEM(  # pyright: ignore[reportCallIssue] - its max_steps is a property
            sampler=self.sampler, schedule=self.schedule.resolved(), start_scale=self.start_scale
        )

    def _hidden(self, num_rows: int) -> AbstractHiddenMethod:
        return self.hidden or (Standard() if num_rows <= STANDARD_UP_TO else CrossApproximation())


METHODS["stride"] = Stride


def _check_same(start: StrideTarget, architecture: AbstractArchitecture, data: Dataset) -> None:
    posterior, scaled = start.posterior, start.initial.fitted.model.to_model_units(data)
    before, now = (posterior.prior.x, posterior.y), (scaled.x, scaled.y)
    if not all(a.shape == b.shape and bool(jnp.allclose(a, b)) for a, b in zip(before, now, strict=True)):
        raise InputError("The fit to go on from was made on other data. Give the same, or begin anew.")
    if not eqx.tree_equal(architecture, posterior.prior.architecture):
        raise InputError(f"The fit to go on from has {posterior.prior.architecture}; got {architecture}.")


def _top(initial: Initial) -> AbstractTop:
    likelihood = initial.fitted.model.likelihood
    if initial.rows is None:
        return ExactTop()
    return SparseTop(initial.rows) if isinstance(likelihood, GaussianNoise) else SampledTop(initial.rows, likelihood)


def _top_start(posterior: Posterior, initial: Initial, data: Dataset) -> Float[Array, "M Q"]:
    """Whitened values of the top layer at which it is what the one-layer GP expects at the inducing points."""
    x = posterior.prior.x[initial.rows]
    K = Stationary(initial.kernel)(x, x)
    expected = predict_latent(initial.fitted, data.x[initial.rows]).mean
    return solve_lower(safe_cholesky(K).factor, expected)
