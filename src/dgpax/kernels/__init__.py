"""Covariance functions. A new one is a file with a class, a line here and a row in the contract tests."""

from ._algebra import Power as Power
from ._algebra import Product as Product
from ._algebra import Scaled as Scaled
from ._algebra import Sum as Sum
from ._base import AbstractKernel as AbstractKernel
from ._dot_product import ArcCosine as ArcCosine
from ._dot_product import Linear as Linear
from ._dot_product import Polynomial as Polynomial
from ._inputs import ActiveDimensions as ActiveDimensions
from ._inputs import Warped as Warped
from ._nonstationary import ChangePoints as ChangePoints
from ._nonstationary import Paciorek as Paciorek
from ._nonstationary import gibbs as gibbs
from ._periodic import Cosine as Cosine
from ._periodic import Periodic as Periodic
from ._prior import sample_prior as sample_prior
from ._simple import Constant as Constant
from ._simple import White as White
from ._spectral import sample_frequencies as sample_frequencies
from ._spectral import spectral_density as spectral_density
from ._stationary import RBF as RBF
from ._stationary import AbstractStationary as AbstractStationary
from ._stationary import Matern12 as Matern12
from ._stationary import Matern32 as Matern32
from ._stationary import Matern52 as Matern52
from ._stationary import RationalQuadratic as RationalQuadratic
