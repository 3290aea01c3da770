"""Predictions of a fitted model, in the units of the raw data."""

from ._likelihood import PredictedMoments as PredictedMoments
from ._likelihood import class_probabilities as class_probabilities
from ._likelihood import log_density as log_density
from ._likelihood import predict_moments as predict_moments
from ._predict import predict as predict
from ._predict import predict_jointly as predict_jointly
from ._predict import predict_latent as predict_latent
