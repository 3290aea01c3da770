"""STRIDE: deep GPs with sampled hidden layers and greedily chosen inducing points.

`fit(Residual(), data, "stride")` trains. An architecture (`Composition`, `Residual`, `Convolution`, `Injective`) says
what a layer does with the one below, a hidden method (`Standard`, `CrossApproximation`, `FullySparse`) how hidden
layers are sampled, and a sampler (`PCN`, `EllipticalSlice`) how the chains move.
"""

from ..warps import monotone_integral as monotone_integral
from ._architectures import AbstractArchitecture as AbstractArchitecture
from ._architectures import Composition as Composition
from ._architectures import Convolution as Convolution
from ._architectures import Injective as Injective
from ._architectures import Residual as Residual
from ._architectures import SquaredClip as SquaredClip
from ._bound import collapsed_bound as collapsed_bound
from ._bound import factorise as factorise
from ._covariance import LocallyScaled as LocallyScaled
from ._covariance import Stationary as Stationary
from ._cross_approximation import CrossApproximation as CrossApproximation
from ._engine import MonteCarloEM as MonteCarloEM
from ._engine import StrideTarget as StrideTarget
from ._fit import StrideFit as StrideFit
from ._fully_sparse import FullySparse as FullySparse
from ._gains import addition_gains as addition_gains
from ._gains import removal_gains as removal_gains
from ._hidden import AbstractHiddenMethod as AbstractHiddenMethod
from ._hidden import Standard as Standard
from ._initial import Initial as Initial
from ._initial import initial_gp as initial_gp
from ._method import Stride as Stride
from ._samplers import PCN as PCN
from ._samplers import AbstractSampler as AbstractSampler
from ._samplers import Chains as Chains
from ._samplers import EllipticalSlice as EllipticalSlice
from ._samplers import run_chains as run_chains
from ._selection import exchange_rows as exchange_rows
from ._selection import greedy_rows as greedy_rows
from ._settings import Schedule as Schedule
