"""How things show themselves: on one line in a terminal, as a small table in a notebook."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from ._base import AbstractParameter

MOST_ENTRIES = 8


def counted(number: int, noun: str) -> str:
    """1 row, 2 rows."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> str:
    """A table for a notebook; all cells are text, never markup."""
    first = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    above = f"<p>{html.escape(title)}</p>" if title else ""
    return f"{above}<table><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>"


def brief(value: Any) -> str:
    """An array in few characters: its entries, or its range; its shape where it has no values yet."""
    if isinstance(value, Tracer | jax.ShapeDtypeStruct):
        return f"array{tuple(value.shape)}"
    value = np.asarray(value)
    if value.size <= MOST_ENTRIES and value.ndim <= 1:
        return np.array2string(value, precision=4, suppress_small=False, separator=", ").replace("\n", "")
    if value.dtype.kind not in "iuf":
        return f"array{value.shape}"
    return f"{value.min():.4g} … {value.max():.4g} (mean {value.mean():.4g})"


def on_one_line(module: Any) -> str:
    """`RBF(lengthscale=[0.5, 2.], variance=1.)`: the fields of a module, parameters by their values."""
    fields = [(field.name, getattr(module, field.name, "…")) for field in dataclasses.fields(module)]
    return f"{type(module).__name__}({', '.join(f'{name}={_shown(value)}' for name, value in fields)})"


def _shown(value: Any) -> str:
    if isinstance(value, AbstractParameter):
        return brief(value.raw if isinstance(value.raw, Tracer | jax.ShapeDtypeStruct) else value.value)
    if isinstance(value, jax.Array | np.ndarray):
        return brief(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_shown, value))}]"
    return getattr(value, "__name__", None) or repr(value)
