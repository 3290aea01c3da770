"""Predictions of a fitted model, in the units of the raw data."""

from ._layers import predict_layers as predict_layers
from ._layers import sample_jointly as sample_jointly
from ._likelihood import PredictedMoments as PredictedMoments
from ._likelihood import class_probabilities as class_probabilities
from ._likelihood import log_density as log_density
from ._likelihood import predict_moments as predict_moments
from ._pathwise import FunctionDraws as FunctionDraws
from ._pathwise import draw_functions as draw_functions
from ._predict import predict as predict
from ._predict import predict_jointly as predict_jointly
from ._predict import predict_latent as predict_latent
from ._uncertain import predict_uncertain as predict_uncertain
from ._uncertain import predict_uncertain_sampled as predict_uncertain_sampled
