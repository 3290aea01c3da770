"""dgpax: deep Gaussian processes in JAX. One model definition, every way of inferring it."""

import importlib as _importlib
import os as _os
import typing as _typing

from . import settings as _settings

if _typing.TYPE_CHECKING:  # what type checkers see; at run time everything is imported when it is first used, below
    from . import alignment as alignment
    from . import covariances as covariances
    from . import data as data
    from . import design as design
    from . import distributed as distributed
    from . import distributions as distributions
    from . import errors as errors
    from . import estimators as estimators
    from . import expectations as expectations
    from . import fits as fits
    from . import inducing as inducing
    from . import inference as inference
    from . import interop as interop
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
    from . import sensitivity as sensitivity
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
    from .settings import cache_compilations as cache_compilations

__version__ = "0.2.0"
_PACKAGES = {
    "alignment", "covariances", "data", "design", "distributed", "distributions", "errors", "estimators",
    "expectations", "fits", "inducing", "inference", "interop", "kernels", "layers", "likelihoods", "linalg",
    "means", "metrics", "objectives", "parameters", "plot", "posteriors", "prediction", "report", "sensitivity",
    "stride", "warps",
}  # fmt: skip
_INTERNAL = {
    "architectures", "conditional", "io", "model", "programs", "propagate", "recipes", "settings", "storage", "typing",
    "uncertain",
}  # fmt: skip
_HOMES = {
    "architectures": ("compare_with_one_layer", "decoder", "deep_gp", "dsvi", "gp_regression", "gplvm",
                      "latent_positions", "sparse_gp_regression", "star"),
    "data": ("Dataset", "dataset", "load"),
    "estimators": ("DeepGPClassifier", "DeepGPRegressor", "DeepGPTransformer"),
    "inference": ("Fit", "fit", "fit_many"),
    "io": ("load_model", "save"),
    "layers": ("GPLayer",),
    "model": ("DeepGP",),
    "parameters": ("freeze", "table", "unfreeze"),
    "prediction": ("predict", "predict_jointly", "predict_latent"),
    "settings": ("cache_compilations",),
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a package, or the home of a name, and keep it."""
    if name == "__all__":  # what `from dgpax import *` asks for
        return __dir__()
    if name in _HOME:
        value = getattr(_importlib.import_module(f".{_HOME[name]}", __name__), name)
    elif name in _PACKAGES or name in _INTERNAL:
        value = _importlib.import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module 'dgpax' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_PACKAGES, *_HOME, "__version__"])


# float64 is the default of dgpax; set JAX_ENABLE_X64=0 to keep float32
_settings.when_jax_is_imported(_settings.wide_floats)
if "DGPAX_CACHE" in _os.environ:
    _settings.when_jax_is_imported(_settings.cache_compilations)
