"""Estimators in the manner of scikit-learn: a table in, calibrated predictions out."""

from ._base import AbstractEstimator as AbstractEstimator
from ._classifier import DeepGPClassifier as DeepGPClassifier
from ._regressor import DeepGPRegressor as DeepGPRegressor
from ._transformer import DeepGPTransformer as DeepGPTransformer
