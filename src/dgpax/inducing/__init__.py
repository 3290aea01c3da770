"""Inducing variables and ways to choose the first ones from the data."""

from ._base import AbstractInducing as AbstractInducing
from ._drawn import DrawnPoints as DrawnPoints
from ._fourier import AdditiveFourier as AdditiveFourier
from ._fourier import Fourier as Fourier
from ._fourier import ProductFourier as ProductFourier
from ._functionals import BoxIntegrals as BoxIntegrals
from ._functionals import Derivatives as Derivatives
from ._greedy import gains_in_bound as gains_in_bound
from ._greedy import greedy_bound as greedy_bound
from ._greedy import greedy_variance as greedy_variance
from ._kmeans import distinct_rows as distinct_rows
from ._kmeans import k_means as k_means
from ._multiscale import Multiscale as Multiscale
from ._outputs import OutputPairs as OutputPairs
from ._outputs import OutputPoints as OutputPoints
from ._patches import Patches as Patches
from ._points import Points as Points
