"""Predictive distributions: independent Gaussians, finite mixtures of them, and Gaussians with full covariances."""

from ._affine import Affine as Affine
from ._base import AbstractDistribution as AbstractDistribution
from ._base import safe_sqrt as safe_sqrt
from ._gaussian import Gaussian as Gaussian
from ._joint import AbstractJointGaussian as AbstractJointGaussian
from ._joint import GaussianOverBoth as GaussianOverBoth
from ._joint import GaussianOverInputs as GaussianOverInputs
from ._joint import GaussianOverOutputs as GaussianOverOutputs
from ._joint_mixture import JointMixture as JointMixture
from ._mixture import Mixture as Mixture
