"""What is maximised: pure functions of a model and data that return their terms."""

from ._base import AbstractObjective as AbstractObjective
from ._base import AbstractTerms as AbstractTerms
from ._collapsed import CollapsedBoundTerms as CollapsedBoundTerms
from ._collapsed import collapsed_bound as collapsed_bound
from ._elbo import ELBO as ELBO
from ._elbo import Predictive as Predictive
from ._elbo import SampledELBO as SampledELBO
from ._elbo import VariationalTerms as VariationalTerms
from ._elbo import elbo as elbo
from ._elbo import predictive_objective as predictive_objective
from ._elbo import sampled_elbo as sampled_elbo
from ._elbo import standard_kl as standard_kl
from ._evidence import EvidenceTerms as EvidenceTerms
from ._evidence import log_evidence as log_evidence
from ._fourier import FourierStatistics as FourierStatistics
from ._fourier import collapsed_bound_from as collapsed_bound_from
from ._fourier import has_fourier_statistics as has_fourier_statistics
from ._importance import ImportanceWeighted as ImportanceWeighted
from ._importance import importance_weighted_elbo as importance_weighted_elbo
from ._latent import latent_elbo as latent_elbo
from ._log_joint import LogJointTerms as LogJointTerms
from ._log_joint import log_joint as log_joint
from ._uncertain import sampled_uncertain_elbo as sampled_uncertain_elbo
from ._uncertain import uncertain_elbo as uncertain_elbo
