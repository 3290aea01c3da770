"""The model: layers, a likelihood, and the scaling of the data it was made for."""

from __future__ import annotations

from typing import Any

import equinox as eqx

from .data import Dataset, Scaling
from .distributions import AbstractDistribution, AbstractJointGaussian, Affine, JointMixture
from .errors import InputError
from .likelihoods import AbstractLikelihood
from .parameters import COLUMNS, html_table, table
from .typing import Array, Float


class DeepGP(eqx.Module):
    """y ~ likelihood(f_L(… f_1(x))). With one layer it is a Gaussian process.

    The model holds the prior only; what is believed after seeing data is a posterior. It works in scaled units:
    `scaling` turns raw inputs into these and predictions back, and None means that raw units are the model's.

    >>> from dgpax import DeepGP, GPLayer
    >>> from dgpax.kernels import RBF, Matern32
    >>> from dgpax.likelihoods import StudentT
    >>> gp = DeepGP(GPLayer(RBF(1.0)), StudentT())
    >>> deep = DeepGP([GPLayer(RBF(1.0), num_outputs=2), GPLayer(Matern32([1.0, 1.0]))], StudentT())
    >>> len(gp.layers), len(deep.layers)
    (1, 2)
    """

    layers: tuple[Any, ...]
    """AbstractLayers, mostly GPLayers: typed so that `model.layers[0].kernel` needs no cast."""
    likelihood: AbstractLikelihood
    scaling: Scaling | None = None

    def __init__(self, layers, likelihood: AbstractLikelihood, scaling: Scaling | None = None):
        self.layers = tuple(layers) if isinstance(layers, list | tuple) else (layers,)
        self.likelihood = likelihood
        self.scaling = scaling
        if not self.layers:
            raise InputError("DeepGP(layers=...) needs at least one layer; got none.")

    def to_model_units(self, data: Dataset) -> Dataset:
        """The data as the layers see it."""
        return data if self.scaling is None else self.scaling.dataset(data)

    def inputs_to_model_units(self, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
        """The inputs as the first layer sees them."""
        return x if self.scaling is None else self.scaling.inputs(x)

    def to_raw_units(self, distribution: AbstractDistribution) -> AbstractDistribution:
        """A prediction in the units of the raw targets."""
        if self.scaling is None:
            return distribution
        return Affine(distribution, self.scaling.y_mean, self.scaling.y_scale)

    def joint_to_raw_units(
        self, distribution: AbstractJointGaussian | JointMixture
    ) -> AbstractJointGaussian | JointMixture:
        """A joint prediction in the units of the raw targets."""
        if self.scaling is None:
            return distribution
        return distribution.affine(self.scaling.y_mean, self.scaling.y_scale)

    def __str__(self) -> str:
        return str(table(self))

    def __repr__(self) -> str:
        shown = " → ".join(f"{_kind(layer)}({_kind(getattr(layer, 'kernel', None))})" for layer in self.layers)
        return f"DeepGP({shown} → {_kind(self.likelihood)})"

    def _repr_html_(self) -> str:
        listing = table(self)
        return html_table(COLUMNS, listing.rows, repr(self))


def _kind(part: object) -> str:
    return "" if part is None else type(part).__name__
