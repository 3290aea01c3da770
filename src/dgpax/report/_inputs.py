"""Inputs as the reader knows them: the columns of the table, before categories became columns of 0 and 1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data import Dataset, Encoding
from ..errors import InputError

AROUND = 12
"""Places on a circle that are tried."""


class Input(NamedTuple):
    """A column by its name, and where its numbers stand among the model's inputs: several are categories, one-hot,
    or a place on a circle."""

    name: str
    places: tuple[int, ...]
    comes_round: bool = False

    def moves(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Rows [R, D] with this input moved and all others as they are, [K, R, D]: by half a standard deviation of x
        down and up, to every category, or once around the circle."""
        if self.comes_round:
            angles = 2.0 * np.pi * np.arange(AROUND) / AROUND
            moved = np.tile(rows, (AROUND, 1, 1))
            moved[..., list(self.places)] = np.stack([np.cos(angles), np.sin(angles)], axis=1)[:, None, :]
            return moved
        if len(self.places) > 1:
            moved = np.tile(rows, (len(self.places), 1, 1))
            moved[..., list(self.places)] = np.eye(len(self.places))[:, None, :]
            return moved
        step = 0.5 * np.std(x, axis=0) * np.isin(np.arange(x.shape[1]), self.places)
        return np.stack([rows - step, rows + step])

    def effect(self, x: np.ndarray, f: np.ndarray) -> float:
        """Of values [K, R, P] at the moved rows, the root mean square over R and P of their change over one standard
        deviation, f(x + ½ s) − f(x − ½ s); for categories, their standard deviation, weighted by how frequent they are:
        the same for two that are equally frequent; on a circle, that of its places."""
        if len(self.places) == 1:
            return float(np.sqrt(np.mean((f[1] - f[0]) ** 2)))
        share = np.ones(AROUND) if self.comes_round else np.mean(x[:, list(self.places)], axis=0)
        share = (share / max(share.sum(), 1e-300))[:, None, None]
        mean = np.sum(share * f, axis=0)
        return float(np.sqrt(np.mean(np.sum(share * (f - mean) ** 2, axis=0))))


def inputs_of(data: Dataset, encoding: Encoding | None) -> tuple[Input, ...]:
    """The inputs of a dataset; with an encoding, the columns of a table, without the marks of gaps."""
    if encoding is None:
        names = data.input_names or tuple(f"x{i}" for i in range(data.num_inputs))
        return tuple(Input(name, (i,)) for i, name in enumerate(names))
    if len(encoding.output_names) != data.num_inputs:
        raise InputError(
            f"The encoding makes {len(encoding.output_names)} columns and the data have {data.num_inputs}. Pass the "
            "one that made them."
        )
    circles = encoding.circles
    apart = {*encoding.gaps, *(place for places in circles.values() for place in places)}
    inputs = [
        Input(column.name, tuple(place for place in places if place not in apart))
        for column, places in zip(encoding.columns, encoding.places, strict=True)
    ]
    inputs += [Input(name, places, comes_round=True) for name, places in circles.items()]
    return tuple(one for one in inputs if one.places)
