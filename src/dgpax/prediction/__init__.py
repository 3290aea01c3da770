"""Predictions of a fitted model, in the units of the raw data."""

from ._predict import predict as predict
from ._predict import predict_jointly as predict_jointly
from ._predict import predict_latent as predict_latent
