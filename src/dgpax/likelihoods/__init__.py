"""Likelihoods p(y | f): what the data are given the latent functions. The conventions stand in `_base.py`."""

from ._base import AbstractClassification as AbstractClassification
from ._base import AbstractLikelihood as AbstractLikelihood
from ._bernoulli import BernoulliLogit as BernoulliLogit
from ._bernoulli import BernoulliProbit as BernoulliProbit
from ._beta import Beta as Beta
from ._correlated import CorrelatedGaussianNoise as CorrelatedGaussianNoise
from ._gamma import Gamma as Gamma
from ._gaussian import GaussianNoise as GaussianNoise
from ._heteroskedastic import HeteroskedasticGaussian as HeteroskedasticGaussian
from ._multiclass import AbstractMulticlass as AbstractMulticlass
from ._negative_binomial import NegativeBinomial as NegativeBinomial
from ._ordinal import Ordinal as Ordinal
from ._per_output import PerOutput as PerOutput
from ._poisson import Poisson as Poisson
from ._robust_max import RobustMax as RobustMax
from ._scalar import AbstractQuadratureLikelihood as AbstractQuadratureLikelihood
from ._scalar import AbstractScalarLikelihood as AbstractScalarLikelihood
from ._softmax import Softmax as Softmax
from ._student_t import StudentT as StudentT
from ._support import Support as Support
