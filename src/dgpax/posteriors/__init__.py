"""Posterior families: what is believed about the inducing outputs of all layers."""

from ._base import AbstractPosterior as AbstractPosterior
from ._base import Carry as Carry
from ._base import Layers as Layers
from ._base import Moments as Moments
from ._collapsed import CollapsedTerms as CollapsedTerms
from ._collapsed import collapsed_statistics as collapsed_statistics
from ._collapsed import optimal_posterior as optimal_posterior
from ._conjugate import noise_variances as noise_variances
from ._conjugate import noisy_gram as noisy_gram
from ._conjugate import one_gp_layer as one_gp_layer
from ._conjugate import stack_outputs as stack_outputs
from ._exact import Exact as Exact
from ._latents import AbstractLatents as AbstractLatents
from ._latents import Encoder as Encoder
from ._latents import RowLatents as RowLatents
from ._mean_field import GaussianBlock as GaussianBlock
from ._mean_field import MeanField as MeanField
from ._natural import AbstractNatural as AbstractNatural
from ._natural import classical_natural_step as classical_natural_step
from ._natural import natural_step as natural_step
from ._whitening import InducingOutputs as InducingOutputs
from ._whitening import from_unwhitened as from_unwhitened
from ._whitening import kl_unwhitened as kl_unwhitened
from ._whitening import to_unwhitened as to_unwhitened
