"""Several fits as one: their predictions are mixtures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..distributions import AbstractJointGaussian, Gaussian, GaussianOverOutputs
from ..errors import InputError
from ..model import DeepGP
from ..typing import Array, Float
from ._base import NUM_FEATURES, AbstractFit
from ._report import FitReport

AnyGaussian = Gaussian | AbstractJointGaussian
Q = TypeVar("Q", bound=AnyGaussian)


class Ensemble(AbstractFit):
    """Fits to the same columns, weighed against each other: of any depth, noise, kernel and scaling.

    Predictions are exact mixtures of the members' predictions; draws come from the members in proportion to the
    weights. `model` is that of the member with the largest weight, and so is the report unless one is given.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> kernels = dgpax.kernels.RBF(0.5), dgpax.kernels.Matern52(0.5)
    >>> fits = [dgpax.fit(dgpax.gp_regression(data, kernel), data, progress=False) for kernel in kernels]
    >>> both = dgpax.fits.Ensemble(fits, [0.3, 0.7])
    >>> type(dgpax.predict(both, [[0.25]]).base).__name__
    'Mixture'
    """

    members: tuple[AbstractFit, ...]
    weights: tuple[float, ...] = eqx.field(static=True)
    report: FitReport = eqx.field(static=True)

    def __init__(
        self,
        members: Iterable[AbstractFit],
        weights: Sequence[float | int] | np.ndarray | None = None,
        report: FitReport | None = None,
    ):
        self.members = tuple(members)
        given = np.ones(len(self.members)) if weights is None else np.asarray(weights, float)
        if not self.members or given.shape != (len(self.members),):
            raise InputError(
                f"Ensemble(members, weights) needs at least one fit and a weight for each; got {len(self.members)} "
                f"and weights of shape {given.shape}."
            )
        if not (np.all(np.isfinite(given)) and np.all(given >= 0) and given.sum() > 0):
            raise InputError(f"The weights of an Ensemble must be finite, at least 0 and not all 0; got {given}.")
        columns = {member.num_inputs for member in self.members}
        if len(columns) > 1:
            raise InputError(f"The members of an Ensemble need equally many inputs; got {sorted(columns)}.")
        self.weights = tuple((given / given.sum()).tolist())
        self.report = self._heaviest.report if report is None else report

    @property
    def _heaviest(self) -> AbstractFit:
        return self.members[int(np.argmax(self.weights))]

    @property
    def model(self) -> DeepGP:
        return self._heaviest.model

    @property
    def num_inputs(self) -> int:
        return self.members[0].num_inputs

    @property
    def input_names(self) -> tuple[str, ...]:
        return self.members[0].input_names

    @property
    def parts(self):
        pairs = zip(self.weights, self.members, strict=True)
        return tuple((weight * own, part) for weight, member in pairs if weight > 0 for own, part in member.parts)

    def latent(self, x, *, num_samples, seed):
        return self._sampled(x, num_samples, seed, lambda part, x, n: part.latent(x, num_samples=n, seed=seed))

    def latent_jointly(self, x, over, *, num_samples, seed):
        def of_part(part, x, n):
            return part.latent_jointly(x, over, num_samples=n, seed=seed)

        return self._sampled(x, num_samples, seed, of_part)

    def draws(self, x, num_draws, *, seed):
        raw, drawn = _raw_inputs(self.model, x), []
        for part, count, own_seed in shares(self, num_draws, seed):
            f = part.draws(part.model.inputs_to_model_units(raw), count, seed=own_seed)
            shift, scale = _change_of_units(part.model, self.model)
            drawn.append((shift + scale * f).astype(f.dtype))
        return jnp.concatenate(drawn)

    def functions(self, num_draws, *, seed, num_features=NUM_FEATURES):
        chosen = shares(self, num_draws, seed)
        return PooledFunctions(tuple(part.functions(n, seed=s, num_features=num_features) for part, n, s in chosen))

    def _sampled(self, x: Float[Array, "N D"], num_samples: int, seed: int, of_part: Callable) -> AnyGaussian:
        """Components of an equal mixture, as many from each part as its weight says."""
        raw, found = _raw_inputs(self.model, x), []
        for part, count, _ in shares(self, num_samples, seed):
            q = in_units_of(self.model, part.model, of_part(part, part.model.inputs_to_model_units(raw), count))
            own = stacked(q)
            chosen = np.arange(count) * own.mean.shape[0] // count
            found.append((1.0, jax.tree.map(lambda leaf, chosen=chosen: leaf[chosen], own)))
        return pooled(found)[0]


class PooledFunctions(eqx.Module):
    """Functions drawn from several fits: call it with inputs in raw units."""

    members: tuple[Callable[..., Float[Array, "S N P"]], ...]

    def __call__(self, x) -> Float[Array, "S N P"]:
        return jnp.concatenate([member(x) for member in self.members])


def shares(fitted: AbstractFit, total: int, seed: int) -> list[tuple[AbstractFit, int, int]]:
    """The parts that give some of `total` draws: how many, by their weights, and each with a seed of its own."""
    weights = np.asarray([weight for weight, _ in fitted.parts])
    ends = np.floor(total * np.cumsum(weights) / weights.sum() + 0.5).astype(int)
    counts = np.diff(ends, prepend=0).tolist()
    both = zip(counts, fitted.parts, strict=True)
    return [(part, count, seed + number) for number, (count, (_, part)) in enumerate(both) if count]


def in_units_of(wanted: DeepGP, own: DeepGP, q: Q) -> Q:
    """A distribution in one model's units in those of another."""
    if eqx.tree_equal(wanted.scaling, own.scaling):
        return q
    moved: Any = q.affine(*_change_of_units(own, wanted))
    return moved


def pooled(weighted: Sequence[tuple[float, Q]]) -> tuple[Q, Float[Array, " S"]]:
    """The components of several equal mixtures as those of one, and their log weights."""
    if len({type(q) for _, q in weighted}) > 1:
        weighted = [(weight, GaussianOverOutputs.of(q) if isinstance(q, Gaussian) else q) for weight, q in weighted]
    each = [stacked(q) for _, q in weighted]
    sizes = [q.mean.shape[0] for q in each]
    log_weights = [np.full(S, np.log(weight / S)) for S, (weight, _) in zip(sizes, weighted, strict=True)]
    components = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *each)
    return components, jnp.asarray(np.concatenate(log_weights), components.mean.dtype)


def stacked(q: Q) -> Q:
    """With an axis of components, which a single one doesn't have."""
    return q if q.mean.ndim == 3 else jax.tree.map(lambda leaf: leaf[None], q)


def _raw_inputs(model: DeepGP, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
    return x if model.scaling is None else (model.scaling.x_mean + model.scaling.x_scale * x).astype(x.dtype)


def _change_of_units(own: DeepGP, wanted: DeepGP) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Shift and scale from one model's outputs to those of another."""
    (m, s), (M, S) = ((0.0, 1.0) if u is None else (u.y_mean, u.y_scale) for u in (own.scaling, wanted.scaling))
    return jnp.asarray((m - M) / S), jnp.asarray(s / S)
