"""Scores of predicted class probabilities.

`labels` are the classes 0, 1, ..., C − 1 of shape [N] or [N, 1]; a NaN is a missing one. `probabilities` have shape
[N, C]; for two classes the probability of class 1 alone, [N] or [N, 1], is enough.
"""

from __future__ import annotations

import jax.numpy as jnp

from ..errors import InputError
from ..typing import Array, ArrayLike, Bool, Float, Int, Scalar, Shaped
from ._targets import known, require_rows

SUM_TOLERANCE = 1e-3


def accuracy(labels: Shaped[ArrayLike, "..."], probabilities: Float[ArrayLike, "..."]) -> Scalar:
    """Fraction of rows whose most probable class is the label.

    >>> import numpy as np
    >>> from dgpax.metrics import accuracy
    >>> labels, probabilities = np.array([0, 1]), np.array([[0.75, 0.25], [0.5, 0.5]])
    >>> round(float(accuracy(labels, probabilities)), 4)
    0.5
    """
    labels, observed, probabilities = _classes(labels, probabilities)
    return _average(jnp.argmax(probabilities, axis=1) == labels, observed, probabilities.dtype)


def log_loss(labels: Shaped[ArrayLike, "..."], probabilities: Float[ArrayLike, "..."]) -> Scalar:
    """−mean log probability of the label; probabilities below the rounding unit count as it, so it is finite.

    >>> import numpy as np
    >>> from dgpax.metrics import log_loss
    >>> labels, probabilities = np.array([0, 1]), np.array([[0.75, 0.25], [0.5, 0.5]])
    >>> round(float(log_loss(labels, probabilities)), 4)
    0.4904
    """
    labels, observed, probabilities = _classes(labels, probabilities)
    chosen = jnp.take_along_axis(probabilities, labels[:, None], axis=1)[:, 0]
    smallest = float(jnp.finfo(chosen.dtype).eps)
    return _average(-jnp.log(jnp.maximum(chosen, smallest)), observed, probabilities.dtype)


def brier(labels: Shaped[ArrayLike, "..."], probabilities: Float[ArrayLike, "..."]) -> Scalar:
    """Brier score: mean (p − label)² for two classes, mean Σ_c (p_c − [label = c])² for more, as in scikit-learn.

    >>> import numpy as np
    >>> from dgpax.metrics import brier
    >>> labels, probabilities = np.array([0, 1]), np.array([[0.75, 0.25], [0.5, 0.5]])
    >>> round(float(brier(labels, probabilities)), 4)
    0.1562
    """
    labels, observed, probabilities = _classes(labels, probabilities)
    classes = jnp.arange(probabilities.shape[1])
    squares = jnp.sum((probabilities - (labels[:, None] == classes)) ** 2, axis=1)
    scale = 0.5 if classes.size == 2 else 1.0
    return scale * _average(squares, observed, probabilities.dtype)


def auc(labels: Shaped[ArrayLike, "..."], probabilities: Float[ArrayLike, "..."]) -> Scalar:
    """Area under the ROC curve: the chance that a row of class 1 ranks above one of class 0, a tie counting one half.

    The Mann-Whitney statistic, (Σ ranks of class 1 − n₁(n₁ + 1)/2)/(n₀ n₁)   [Hanley & McNeil 1982].
    """
    labels, observed, probabilities = _classes(labels, probabilities)
    if probabilities.shape[1] != 2:
        raise InputError(
            f"auc is for two classes; got probabilities of {probabilities.shape[1]}. Score one class "
            "against the rest: auc(labels == c, probabilities[:, c])."
        )
    positive, negative = observed & (labels == 1), observed & (labels == 0)
    num_positive, num_negative = (jnp.sum(mask, dtype=probabilities.dtype) for mask in (positive, negative))
    if known(positive) and not (bool(num_positive) and bool(num_negative)):
        raise InputError("auc needs rows of both classes; all observed labels are the same.")
    scores = jnp.where(observed, probabilities[:, 1], jnp.inf)
    ordered = jnp.sort(scores)
    before, upto = (jnp.searchsorted(ordered, scores, side=side) for side in ("left", "right"))
    ranks = 0.5 * (before + upto + 1).astype(scores.dtype)
    above = jnp.sum(jnp.where(positive, ranks, 0.0)) - 0.5 * num_positive * (num_positive + 1.0)
    return above / (num_positive * num_negative)


def _average(scores: Shaped[Array, " N"], observed: Bool[Array, " N"], dtype) -> Scalar:
    return jnp.sum(jnp.where(observed, scores, 0), dtype=dtype) / jnp.sum(observed, dtype=dtype)


def _classes(labels, probabilities) -> tuple[Int[Array, " N"], Bool[Array, " N"], Float[Array, "N C"]]:
    """Labels (0 where missing), which of them are observed, and one column of probabilities per class."""
    labels, probabilities = jnp.asarray(labels), jnp.asarray(probabilities)
    require_rows(labels)
    rows = labels.shape[0]
    if labels.shape not in ((rows,), (rows, 1)):
        raise InputError(f"labels must have shape [N] or [N, 1]; got {labels.shape}. Pass class numbers, not one-hot.")
    if probabilities.ndim not in (1, 2) or probabilities.shape[0] != rows:
        raise InputError(
            f"probabilities must have shape [N, C] with N = {rows}, the number of labels; got {probabilities.shape}."
        )
    labels, probabilities = labels.reshape(rows), probabilities.reshape(rows, -1)
    if probabilities.shape[1] == 1:
        probabilities = jnp.concatenate([1.0 - probabilities, probabilities], axis=1)
    observed = ~jnp.isnan(labels)
    labels = jnp.where(observed, labels, 0)
    _check_values(labels, observed, probabilities)
    return labels.astype(int), observed, probabilities


def _check_values(labels, observed, probabilities) -> None:
    size = probabilities.shape[1]
    if known(observed) and not bool(jnp.any(observed)):
        raise InputError("Every label is NaN, so there is nothing to score. Pass rows with observed labels.")
    if known(labels) and not bool(jnp.all((labels >= 0) & (labels < size) & (labels == jnp.floor(labels)))):
        raise InputError(f"labels must be whole numbers from 0 to {size - 1}, one per column of the probabilities.")
    if not known(probabilities):
        return
    if not bool(jnp.all((probabilities >= 0) & (probabilities <= 1))):
        raise InputError("probabilities must lie between 0 and 1; pass probabilities, not log odds or percentages.")
    if not bool(jnp.all(jnp.abs(jnp.sum(probabilities, axis=1) - 1.0) < SUM_TOLERANCE)):
        raise InputError("Each row of probabilities must sum to 1; divide by the row sums first.")
