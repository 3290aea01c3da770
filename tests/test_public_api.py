"""What a user can rely on: a name may be added here, and leaves only with a deprecation."""

from __future__ import annotations

import ast
import types
from pathlib import Path

import pytest

import dgpax

PUBLIC = {
    "Dataset", "DeepGP", "DeepGPClassifier", "DeepGPRegressor", "DeepGPTransformer", "Fit", "GPLayer", "alignment",
    "cache_compilations", "compare_with_one_layer", "covariances", "data", "dataset", "decoder", "deep_gp",
    "design", "distributed", "distributions", "dsvi", "errors", "estimators", "expectations", "fit", "fit_many",
    "fits", "freeze", "gp_regression", "gplvm", "inducing", "inference", "interop", "kernels", "latent_positions",
    "layers", "likelihoods", "linalg", "load", "load_model", "means", "metrics", "objectives", "parameters", "plot",
    "posteriors", "predict", "predict_jointly", "predict_latent", "prediction", "report", "save", "sensitivity",
    "sparse_gp_regression", "star", "stride", "table", "unfreeze", "warps",
}  # fmt: skip
INTERNAL_MODULES = {
    "architectures", "conditional", "io", "model", "propagate", "recipes", "settings", "storage", "typing", "uncertain",
}  # fmt: skip


def test_public_names():
    assert set(dir(dgpax)) == PUBLIC | {"__version__"}
    for name in PUBLIC | INTERNAL_MODULES:
        assert getattr(dgpax, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        dgpax.fitt  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


def test_type_checkers_see_what_is_imported_on_demand():
    shown = next(node for node in ast.parse(Path(dgpax.__file__).read_text()).body if isinstance(node, ast.If))
    imports = [node for node in shown.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.asname: node.module for node in imports for alias in node.names}
    assert homes == {**dict.fromkeys(dgpax._PACKAGES), **dgpax._HOME}


def test_everything_public_is_documented():
    missing = []
    for package in [value for name in PUBLIC if isinstance(value := getattr(dgpax, name), types.ModuleType)]:
        for name, value in vars(package).items():
            ours = getattr(value, "__module__", "").startswith("dgpax")
            if not name.startswith("_") and ours and callable(value) and not value.__doc__:
                missing.append(f"{package.__name__}.{name}")
    assert not missing
