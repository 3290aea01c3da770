"""Posterior families by one word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..errors import UnknownNameError
from ._base import AbstractPosterior, Layers
from ._chain import Chain
from ._coupled import Coupled
from ._latents import AbstractLatents
from ._mean_field import MeanField
from ._points_as_locations import PointsAsLocations

POSTERIORS: dict[str, Callable[..., AbstractPosterior]] = {
    "mean-field": MeanField.at_prior,
    "layer-wise": partial(Coupled.at_prior, structure="layer-wise"),
    "stripes-and-arrow": partial(Coupled.at_prior, structure="stripes-and-arrow"),
    "fully-coupled": partial(Coupled.at_prior, structure="fully-coupled"),
    "chain": Chain.at_prior,
    "points-as-locations": PointsAsLocations.at_prior,
}


def posterior_at_prior(word: str, layers: Layers, latents: Sequence[AbstractLatents] = ()) -> AbstractPosterior:
    """The family that a word names, where training starts: at the prior, with inner layers near their mean."""
    if word not in POSTERIORS:
        raise UnknownNameError(f"posterior={word!r} isn't known. There are: {', '.join(POSTERIORS)}.")
    return POSTERIORS[word](layers, latents=latents)
