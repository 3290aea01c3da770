"""STRIDE: Monte Carlo expectation-maximisation over hidden layers and inducing points."""

from __future__ import annotations

import time
from dataclasses import replace

import jax
import jax.numpy as jnp
import jax.random as jr

from ..architectures._shallow import check_data
from ..data import Dataset
from ..errors import InputError, NumericalError
from ..inference._loop import suitable_blas_threads
from ..inference._progress import progress_bar
from ..kernels import AbstractKernel
from ..likelihoods import AbstractLikelihood, GaussianNoise
from ..linalg import safe_cholesky, solve_lower
from ..prediction import predict_latent
from ..typing import Array, Float
from ._architectures import AbstractArchitecture
from ._covariance import Stationary
from ._cross_approximation import CrossApproximation
from ._expectation import Workers, sample
from ._hidden import AbstractHiddenMethod, Standard
from ._initial import Initial, check_initial, initial_gp, initial_variational_gp
from ._maximisation import Maximisation, maximise, restart
from ._predict import StrideFit
from ._problem import Posterior, start_posterior
from ._run import Run, conclude
from ._samplers import PCN, AbstractSampler
from ._settings import Schedule
from ._top import AbstractTop, ExactTop, SampledTop, SparseTop

STANDARD_UP_TO = 5000
"""Rows whose covariance between all of them is still cheap: 200 MB."""


def fit_stride(
    data: Dataset,
    architecture: AbstractArchitecture,
    num_inducing: int | None = 50,
    *,
    hidden: AbstractHiddenMethod | None = None,
    sampler: AbstractSampler | None = None,
    schedule: Schedule | None = None,
    num_particles: int = 50,
    kernel: AbstractKernel | None = None,
    noise_variance: float | None = None,
    likelihood: AbstractLikelihood | None = None,
    initial: Initial | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> StrideFit:
    """Sample the hidden layers of a deep GP and choose the inducing points of its top layer [STRIDE, Algorithm 1].

    Kernel and noise are those of a sparse GP that is trained first, on standardised data; a kernel and a noise variance
    (in raw units, fixed) can be given, or that GP itself as another fit to the same data has it in `initial`.
    `num_inducing=None` is the standard deep GP: no inducing points, O(N³) a step.
    `hidden` says how hidden layers are made of whitened variables (Standard, CrossApproximation, FullySparse); None
    means Standard up to 5,000 rows, and beyond CrossApproximation, which is linear in the rows.

    With a `likelihood` other than Gaussian noise the top layer can't be integrated out and is sampled too: chains take
    longer, and the inducing points stay where they are first.
    """
    check_data(data)
    data.refuse_weights("STRIDE")
    architecture.check(data.num_inputs)
    if num_particles < 1:
        raise InputError(f"num_particles must be at least 1; got {num_particles}.")
    method = hidden or (Standard() if data.num_rows <= STANDARD_UP_TO else CrossApproximation())
    sampler, schedule = sampler or PCN(), (schedule or Schedule()).resolved()
    method.check(num_inducing)
    started = time.perf_counter()
    if initial is None:
        points = num_inducing, schedule.num_candidates
        initial = (
            initial_gp(data, *points, kernel, noise_variance, seed)
            if likelihood is None
            else initial_variational_gp(data, *points, kernel, likelihood, seed)
        )
    check_initial(initial, data, num_inducing)
    seconds_initial = time.perf_counter() - started
    scaled = initial.fitted.model.to_model_units(data)
    scaled = Dataset(scaled.x, scaled.y)
    top = _top(initial)
    posterior, whitened = start_posterior(architecture, method, top, scaled, initial.kernel, initial.noise_variance)
    if isinstance(top, SampledTop):
        whitened = (*whitened, _top_start(posterior, initial, data))
    position = tuple(jnp.broadcast_to(xi, (num_particles, *xi.shape)) for xi in whitened)
    scale = jnp.asarray(sampler.initial_scale, scaled.x.dtype)
    chains = restart(posterior, position, scale, schedule.at_once(posterior, num_particles))
    if not bool(jnp.all(jnp.isfinite(chains.log_likelihood))):
        raise NumericalError("The likelihood isn't finite where the hidden layers start: raise the noise variance.")
    run = Run(posterior, chains)
    _iterate(run, method, sampler, schedule, initial, seed, progress)
    return conclude(run, data, initial, method, sampler, schedule, seed, seconds_initial)


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


def resume(fitted: StrideFit, data: Dataset, num_iterations: int, *, progress: bool | None = None) -> StrideFit:
    """More iterations of a fit on the same data: what one fit with all of them gives, bit for bit."""
    if data.num_rows != fitted.posterior.y.shape[0]:
        raise InputError(f"The fit was made on {fitted.posterior.y.shape[0]} rows; the data has {data.num_rows}.")
    schedule = replace(fitted.schedule, num_iterations=fitted.schedule.num_iterations + num_iterations)
    run = Run(fitted.posterior, fitted.chains, done=fitted.schedule.num_iterations)
    run.continue_from(fitted.report)
    _iterate(run, fitted.method, fitted.sampler, schedule, fitted.initial, fitted.seed, progress)
    settings = fitted.method, fitted.sampler, schedule, fitted.seed, fitted.report.seconds_initial
    return conclude(run, data, fitted.initial, *settings)


def _iterate(
    run: Run,
    method: AbstractHiddenMethod,
    sampler: AbstractSampler,
    schedule: Schedule,
    initial: Initial,
    seed: int,
    progress: bool | None,
) -> None:
    """Expectation and maximisation in turn. Ctrl-C ends it after what is complete."""
    started = time.perf_counter()
    at_once = schedule.at_once(run.posterior, run.chains.num_particles)
    total = schedule.num_iterations * schedule.num_steps
    settings = Maximisation(
        method,
        initial.selectable,
        num_exchanges=schedule.num_exchanges,
        num_candidates=schedule.num_candidates,
        num_updates=schedule.num_updates,
        noise_known=initial.noise_known,
        at_once=at_once,
    )
    threads = suitable_blas_threads(run.posterior.hidden.num_sites())
    with threads, Workers(at_once * run.posterior.num_entries) as workers, progress_bar(total, progress) as show:
        try:
            while run.done < schedule.num_iterations:
                key_chains, key_rows = jr.split(jr.fold_in(jr.key(seed), run.done))
                chains, info = sample(
                    run.posterior, run.chains, key_chains, sampler, adapting=run.done < schedule.warm_up_iterations,
                    num_steps=schedule.num_steps, at_once=at_once, workers=workers,
                )  # fmt: skip
                improved = jax.block_until_ready(maximise(run.posterior, chains, settings, key_rows))
                run.posterior, run.chains = improved.posterior, improved.chains
                run.bound.append(float(improved.bound))
                run.exchanged.append(int(improved.exchanged))
                run.record(info)
                run.done += 1
                show(run.done * schedule.num_steps, run.log_likelihood[-1])
        except KeyboardInterrupt:
            run.interrupted = True
    run.seconds += time.perf_counter() - started
