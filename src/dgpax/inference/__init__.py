"""Inference: `fit` is the only loop; methods say what is maximised, engines take the steps."""

from ._base import AbstractEngine as AbstractEngine
from ._base import AbstractMethod as AbstractMethod
from ._base import Info as Info
from ._base import Problem as Problem
from ._conjugate import Exact as Exact
from ._conjugate import Sparse as Sparse
from ._fit import Fit as Fit
from ._fit import fit as fit
from ._gradient import Gradient as Gradient
from ._latent_inputs import LatentInputs as LatentInputs
from ._lbfgs import LBFGS as LBFGS
from ._loop import Progress as Progress
from ._many import fit_many as fit_many
from ._methods import METHODS as METHODS
from ._methods import as_method as as_method
from ._natural import NaturalGradient as NaturalGradient
from ._noisy_inputs import NoisyInputs as NoisyInputs
from ._report import FitReport as FitReport
from ._stopping import AbstractStopping as AbstractStopping
from ._stopping import NeverStop as NeverStop
from ._stopping import StopWhenStale as StopWhenStale
from ._variational import ModelAndPosterior as ModelAndPosterior
from ._variational import Variational as Variational
from ._variational import suitable_chunk_rows as suitable_chunk_rows
