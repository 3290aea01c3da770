"""Predictions of a fitted model, in the units of the raw data."""

from ._collapse import CompositionalReport as CompositionalReport
from ._collapse import LayerUncertainty as LayerUncertainty
from ._collapse import compositional_report as compositional_report
from ._composition import LayerDraws as LayerDraws
from ._composition import layer_draws as layer_draws
from ._held_out import HeldOut as HeldOut
from ._input_noise import NoisyInputVariance as NoisyInputVariance
from ._input_noise import curvature_given_points as curvature_given_points
from ._input_noise import noisy_input_variance as noisy_input_variance
from ._layers import draw_functions as draw_functions
from ._layers import predict_layers as predict_layers
from ._layers import sample_jointly as sample_jointly
from ._likelihood import PredictedMoments as PredictedMoments
from ._likelihood import class_probabilities as class_probabilities
from ._likelihood import log_density as log_density
from ._likelihood import predict_moments as predict_moments
from ._likelihood import predict_quantiles as predict_quantiles
from ._likelihood import sample_functions as sample_functions
from ._likelihood import sample_observations as sample_observations
from ._predict import predict as predict
from ._predict import predict_jointly as predict_jointly
from ._predict import predict_latent as predict_latent
from ._restarts import RestartComparison as RestartComparison
from ._restarts import compare_restarts as compare_restarts
from ._uncertain import predict_uncertain as predict_uncertain
from ._uncertain import predict_uncertain_sampled as predict_uncertain_sampled
