"""Inducing variables and ways to choose the first ones from the data."""

from ._base import AbstractInducing as AbstractInducing
from ._greedy import greedy_bound as greedy_bound
from ._greedy import greedy_variance as greedy_variance
from ._kmeans import distinct_rows as distinct_rows
from ._kmeans import k_means as k_means
from ._points import Points as Points
