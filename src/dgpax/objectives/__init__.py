"""What is maximised: pure functions of a model and data that return their terms."""

from ._base import AbstractTerms as AbstractTerms
from ._collapsed import CollapsedBoundTerms as CollapsedBoundTerms
from ._collapsed import collapsed_bound as collapsed_bound
from ._elbo import ELBOTerms as ELBOTerms
from ._elbo import elbo as elbo
from ._evidence import EvidenceTerms as EvidenceTerms
from ._evidence import log_evidence as log_evidence
from ._fourier import FourierStatistics as FourierStatistics
from ._fourier import collapsed_bound_from as collapsed_bound_from
