"""dgpax: deep Gaussian processes in JAX. One model definition, every way of inferring it."""

import os as _os

import jax as _jax

if "JAX_ENABLE_X64" not in _os.environ:  # float64 is the default of dgpax; set JAX_ENABLE_X64=0 to keep float32
    _jax.config.update("jax_enable_x64", True)

from . import alignment as alignment
from . import covariances as covariances
from . import data as data
from . import distributions as distributions
from . import errors as errors
from . import estimators as estimators
from . import expectations as expectations
from . import fits as fits
from . import inducing as inducing
from . import inference as inference
from . import kernels as kernels
from . import layers as layers
from . import likelihoods as likelihoods
from . import linalg as linalg
from . import means as means
from . import metrics as metrics
from . import objectives as objectives
from . import parameters as parameters
from . import plot as plot
from . import posteriors as posteriors
from . import prediction as prediction
from . import report as report
from . import stride as stride
from . import warps as warps
from .architectures import compare_with_one_layer as compare_with_one_layer
from .architectures import decoder as decoder
from .architectures import deep_gp as deep_gp
from .architectures import dsvi as dsvi
from .architectures import gp_regression as gp_regression
from .architectures import gplvm as gplvm
from .architectures import latent_positions as latent_positions
from .architectures import sparse_gp_regression as sparse_gp_regression
from .architectures import star as star
from .data import Dataset as Dataset
from .data import dataset as dataset
from .data import load as load
from .estimators import DeepGPClassifier as DeepGPClassifier
from .estimators import DeepGPRegressor as DeepGPRegressor
from .estimators import DeepGPTransformer as DeepGPTransformer
from .inference import Fit as Fit
from .inference import fit as fit
from .inference import fit_many as fit_many
from .io import load_model as load_model
from .io import save as save
from .layers import GPLayer as GPLayer
from .model import DeepGP as DeepGP
from .parameters import freeze as freeze
from .parameters import table as table
from .parameters import unfreeze as unfreeze
from .prediction import predict as predict
from .prediction import predict_jointly as predict_jointly
from .prediction import predict_latent as predict_latent

__version__ = "0.1.0"
