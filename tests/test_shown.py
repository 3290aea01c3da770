"""What things say of themselves, in a terminal and in a notebook."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import dgpax
from dgpax.distributions import Gaussian
from dgpax.errors import InputError, MissingDataError
from dgpax.inference import LBFGS
from dgpax.inference._progress import in_notebook, progress_bar
from dgpax.kernels import LMC, RBF, Linear, Periodic

X = np.linspace(0.0, 1.0, 20)[:, None]
BATCH = Gaussian(jnp.zeros((2, 3, 1)), jnp.ones((2, 3, 1)))
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def fitted():
    data = dgpax.dataset(X, np.sin(6.0 * X[:, 0]))
    return dgpax.fit(dgpax.gp_regression(data), data, engine=LBFGS(max_steps=3), progress=False)


def test_everything_fits_on_a_line(fitted):
    assert repr(RBF([0.5, 2.0])) == "RBF(lengthscale=[0.5, 2. ], variance=1.)"
    assert "Periodic(period=12." in repr(RBF(0.5).on(0) + Periodic(12.0).on(1) * Linear())
    assert repr(fitted.model) == "DeepGP(GPLayer(RBF) → GaussianNoise)"
    assert repr(fitted).startswith("Fit(1 layer, 20 rows, Exact by LBFGS, ") and repr(fitted).endswith(
        "s, not finished)"
    )
    assert repr(dgpax.dataset(X, X)) == "Dataset(20 rows, 1 input, 1 output)"
    assert repr(dgpax.load("energy")) == "NamedDataset('energy', 768 rows, 8 inputs, regression of 'heating_load')"
    assert repr(dgpax.predict(fitted, X)) == "Affine(shape=(20, 1))"
    assert len(repr(LMC(RBF(np.ones((2, 1))), np.ones((3, 2))))) < 300
    assert repr(jax.eval_shape(lambda: RBF(1.0))) == "RBF(lengthscale=array(), variance=array())"


def test_notebooks_show_tables_in_which_names_stay_text(fitted):
    data = dgpax.dataset(pd.DataFrame({HOSTILE: X[:, 0]}), X)
    for shown in (fitted, fitted.model, RBF(1.0), data, dgpax.predict(fitted, X), BATCH):
        page = shown._repr_html_()
        assert page.count("<table>") == page.count("</table>") == 1 and "<script" not in page
    assert "likelihood.noise_variance" in fitted._repr_html_() and "It isn&#x27;t finished" in fitted._repr_html_()
    assert data._repr_html_().count("<tr>") == 6


def test_predictions_as_a_frame(fitted, monkeypatch):
    prediction = dgpax.predict(fitted, X)
    frame = prediction.to_frame(0.8, ["rent"])
    assert list(frame.columns) == ["rent mean", "rent std", "rent low 0.8", "rent high 0.8"] and len(frame) == 20
    low, high = prediction.interval(0.8)
    assert_allclose(frame[["rent low 0.8", "rent high 0.8"]], np.hstack([low, high]))
    two = Gaussian(jnp.zeros((3, 2)), jnp.ones((3, 2)))
    assert list(two.to_frame().columns)[4:6] == ["y1 mean", "y1 std"]
    with pytest.raises(InputError, match="a name for each of 2 outputs"):
        two.to_frame(names=["a"])
    with pytest.raises(InputError, match=r"shape \[N, P\]"):
        BATCH.to_frame()
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert type(two.to_frame()).__module__.startswith("polars")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingDataError, match="pip install pandas"):
        two.to_frame()


def test_a_bar_in_a_notebook(monkeypatch):
    """A notebook is played: what it is told to show is kept."""
    shown = []
    handle = SimpleNamespace(update=shown.append)
    display = SimpleNamespace(HTML=str, display=lambda *what, **how: handle)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1)))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    assert in_notebook()
    with progress_bar(30, None) as bar:
        bar.compiling()
        for step in range(10, 31, 10):
            bar.show(step, -1.5)
    assert shown[0] == "<progress></progress> compiling " and 'value="30" max="30"' in shown[-1]
    assert "objective -1.5" in shown[-1] and len(shown) < 4
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert not in_notebook()
