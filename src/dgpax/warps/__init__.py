"""Priors over increasing functions of one input, for time warps.

A warp is a prior (`MonotonicFlow`, `IntegralWarp`) whose draws, `IncreasingFunctions`, are increasing by construction,
every one of them and in floating-point numbers: integrals of a positive rate, `monotone_integral`.
"""

from ._base import AbstractWarp as AbstractWarp
from ._flow import MonotonicFlow as MonotonicFlow
from ._integral import IncreasingFunctions as IncreasingFunctions
from ._integral import monotone_integral as monotone_integral
from ._rate import IntegralWarp as IntegralWarp
