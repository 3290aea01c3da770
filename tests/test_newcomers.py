"""What newcomers get wrong, and whether the error says what to do: in a process of its own, without checks of types."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
import numpy as np
import dgpax
from dgpax.inference import LBFGS

X = np.linspace(0.0, 1.0, 20)[:, None]
Y = np.sin(6.0 * X[:, 0])
data = dgpax.dataset(X, Y)
model = dgpax.gp_regression(data)
fitted = dgpax.fit(model, data, engine=LBFGS(max_steps=2), progress=False)
errors = []
for attempt in json.load(sys.stdin):
    try:
        eval(attempt)
        errors.append("none")
    except dgpax.errors.DgpaxError as error:
        errors.append(str(error))
print(json.dumps(errors))
"""

ERRORS = {
    "dgpax.predict(model, X)": r"fitted = dgpax\.fit\(model, data\), then predict",
    "dgpax.prediction.draw_functions(model)": r"fitted = dgpax\.fit\(model, data\), then draw_functions",
    "dgpax.prediction.sample_functions(model, X, 3)": r"fitted = dgpax\.fit\(model, data\)",
    "dgpax.report.page(model, data)": r"fitted = dgpax\.fit\(model, data\)",
    "dgpax.predict(dgpax.DeepGPRegressor(), X)": r"its own predict.*estimator\.fit_",
    "dgpax.fit(dgpax.deep_gp(data, 2, 4), data)": r'needs? one layer.*fit\(model, data, "variational"\)',
    "dgpax.fit(data, model)": "Exchange the two",
    "dgpax.fit(model, (X, Y))": r"Make one: dataset\(x, y\)",
    "dgpax.fit(model, X, Y)": r"fit\(model, dataset\(x, y\)\)",
    "dgpax.fit(model, data, 'vi')": "There are: exact, sparse, variational",
    "dgpax.dataset(X[:, 0], Y)": r"x\.reshape\(-1, 1\)",
    "dgpax.dataset(X, Y[:5])": "Give every row of x its y",
    "dgpax.dataset(np.where(X > 0.5, np.nan, X), Y)": "missing='drop'",
    "dgpax.dataset(np.array([['a']] * 20), Y)": "one-hot, or use dgpax.DeepGPRegressor",
    "dgpax.DeepGPRegressor().fit(X, ['a', 'b'] * 10)": "Use DeepGPClassifier for labels",
    "dgpax.DeepGPRegressor(2, inference='exact').fit(X, Y)": "Leave it out, or say",
    "dgpax.predict(fitted, np.zeros((3, 2)))": "Pass the columns that it was trained on",
    "dgpax.predict(fitted, data)": r"data\.x",
    "dgpax.predict(fitted, X).interval(90)": "Pass 0.05, not 5",
    "dgpax.metrics.rmse(Y, dgpax.predict(fitted, X))": r"y\[:, None\]",
    "dgpax.load('bosten')": "There are: energy",
    "dgpax.freeze(model, 'kernel.variance')": r"There are: layers\[0\]\.kernel",
}


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        command, input=json.dumps(list(ERRORS)), capture_output=True, text=True, timeout=300, check=True
    )
    return dict(zip(ERRORS, json.loads(done.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize("attempt", ERRORS)
def test_an_error_names_the_remedy(attempt, said):
    assert re.search(ERRORS[attempt], said[attempt], re.DOTALL), said[attempt]
