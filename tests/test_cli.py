"""The command line, as typed."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import dgpax
from dgpax.cli import app
from dgpax.errors import UnknownNameError

RUNNER = CliRunner()


def test_version_and_datasets():
    assert RUNNER.invoke(app, ["version"]).output.strip() == dgpax.__version__
    listed = RUNNER.invoke(app, ["datasets"]).output
    assert "energy" in listed and "concrete" in listed


@pytest.mark.slow
def test_fit_prints_metrics_and_writes_a_plot(tmp_path):
    words = ["fit", "energy", "--inference", "sparse", "--num-inducing", "10", "--output", str(tmp_path)]
    result = RUNNER.invoke(app, words)
    assert result.exit_code == 0 and "crps" in result.output.lower()
    assert (tmp_path / "energy-sparse-0.png").stat().st_size > 10_000


def test_an_unknown_word_is_an_error_of_one_sentence():
    result = RUNNER.invoke(app, ["fit", "energy", "--layers", "2", "--posterior", "stripes", "--num-inducing", "5"])
    assert isinstance(result.exception, UnknownNameError)
    assert "stripes-and-arrow" in str(result.exception)
