"""What a user can rely on: a name may be added here, and leaves only with a deprecation."""

from __future__ import annotations

import types

import dgpax

PUBLIC = {
    "Dataset", "DeepGP", "DeepGPClassifier", "DeepGPRegressor", "DeepGPTransformer", "Fit", "GPLayer", "alignment",
    "compare_with_one_layer", "covariances", "data", "dataset", "decoder", "deep_gp", "distributions", "dsvi",
    "errors", "estimators", "expectations", "fit", "fit_many", "fits", "freeze", "gp_regression", "gplvm", "inducing",
    "inference", "kernels", "latent_positions", "layers", "likelihoods", "linalg", "load", "load_model", "means",
    "metrics", "objectives", "parameters", "plot", "posteriors", "predict", "predict_jointly", "predict_latent",
    "prediction", "report", "save", "sparse_gp_regression", "star", "stride", "table", "unfreeze", "warps",
}  # fmt: skip
INTERNAL_MODULES = {
    "architectures", "cli", "conditional", "io", "model", "propagate", "recipes", "storage", "typing", "uncertain",
}  # fmt: skip


def test_public_names():
    names = {name for name in vars(dgpax) if not name.startswith("_") and name != "jaxtyping"}  # the test hook's
    assert names - INTERNAL_MODULES == PUBLIC


def test_everything_public_is_documented():
    missing = []
    for package in [value for value in vars(dgpax).values() if isinstance(value, types.ModuleType)]:
        if not package.__name__.startswith("dgpax"):
            continue
        for name, value in vars(package).items():
            ours = getattr(value, "__module__", "").startswith("dgpax")
            if not name.startswith("_") and ours and callable(value) and not value.__doc__:
                missing.append(f"{package.__name__}.{name}")
    assert not missing
