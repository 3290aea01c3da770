"""The command line, as typed."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dgpax
from dgpax import estimators, recipes
from dgpax.cli import _methods, app, main
from dgpax.cli._compare import verdict
from dgpax.cli._doctor import Check, _tried
from dgpax.cli._methods import Scored, gradient_boosting
from dgpax.cli._source import Choice, Source, held_out, prepared, read_source
from dgpax.data import Encoding
from dgpax.errors import DgpaxWarning, InputError, ModelFileError, UnknownNameError

RUNNER = CliRunner()


def run(*words: str) -> str:
    result = RUNNER.invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def houses(num_rows=40, seed=0) -> str:
    """A table with text, gaps, a date and a name with brackets."""
    rng = np.random.default_rng(seed)
    lines = ["size [m²],colour,age,built,price"]
    for index in range(num_rows):
        size, colour = rng.uniform(20, 200), ("red", "blue", "")[index % 3]
        age = "" if index % 5 == 0 else f"{rng.uniform(0, 90):.0f}"
        lines.append(f"{size:.1f},{colour},{age},20{index % 20:02d}-05-01,{3 * size + 40 * (colour == 'red'):.2f}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with a table, and what `fit` makes of it."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "houses.csv").write_text(houses())
    words = ["fit", str(folder / "houses.csv"), "--output", str(folder), "--no-report", "--inference", "sparse"]
    output = run(*words, "--num-inducing", "8", "--max-seconds", "0.1")
    return folder, output


def test_version_and_datasets():
    assert run("version").strip() == dgpax.__version__
    listed = run("datasets")
    assert "energy" in listed and "concrete" in listed
    rows = json.loads(run("datasets", "--json"))
    assert {row["name"]: row["shipped"] for row in rows}["energy"] is True


def test_fit_prints_metrics_and_writes_files(fitted):
    folder, output = fitted
    assert "houses.csv, target price: 40 rows to train, judged by cross-validation in 5 folds" in output
    assert "How good, and how honest" in output and "crps" in output and "likelihood.noise_variance" in output
    assert (folder / "houses-sparse.png").stat().st_size > 10_000
    model = dgpax.load_model(folder / "houses-sparse.dgpax")
    assert model.target == "price" and model.encoding.input_names == ("size [m²]", "colour", "age", "built")
    assert model.encoding.output_names[1:4] == ("colour=blue", "colour=missing", "colour=red")
    assert dict(model.details)["data"] == "houses.csv"


def test_the_same_table_is_the_same_problem_by_every_way(tmp_path, monkeypatch):
    """What is trained follows from a recipe and rows: the same for `fit`, `compare` and the estimator."""
    path, seen = tmp_path / "houses.csv", []
    path.write_text(houses())

    def taken(recipe, rows):
        seen.append((dataclasses.replace(recipe, max_time=None, progress=None), rows))
        raise InterruptedError

    for place in (recipes, _methods, estimators._base):
        monkeypatch.setattr(place, "train", taken)
    frame = pd.read_csv(path)[~held_out(prepared(str(path), Choice()).table, Choice())]
    for ask in (
        lambda: run("fit", str(path), "--keep-held-out"),
        lambda: _methods.deep_gp(read_source(str(path), Choice()), 75.0, 0),
        lambda: dgpax.DeepGPRegressor().fit(
            frame.drop(columns="price").assign(built=pd.to_datetime(frame["built"])), frame["price"]
        ),
    ):
        with pytest.raises(InterruptedError):
            ask()
    (recipe, rows), *others = seen
    for other_recipe, other in others:
        assert other_recipe == recipe and other.gaps == rows.gaps
        np.testing.assert_array_equal(other.x, rows.x)
        np.testing.assert_array_equal(other.y, rows.y)


def test_predict_writes_a_table(fitted):
    folder, _ = fitted
    model, table = str(folder / "houses-sparse.dgpax"), str(folder / "houses.csv")
    printed = list(csv.reader(io.StringIO(run("predict", model, table, "--quantile", "0.95"))))
    assert printed[0] == ["price mean", "price std", "price low 0.9", "price high 0.9", "price q0.95"]
    assert len(printed) == 41
    low, high, same = (np.array([float(row[i]) for row in printed[1:]]) for i in (2, 3, 4))
    assert np.all(low < high) and np.allclose(high, same)
    run("predict", model, table, "--output", str(folder / "new" / "p.csv"))
    assert (folder / "new" / "p.csv").read_text().splitlines()[1].split(",") == printed[1][:4]
    columns = json.loads(run("predict", model, table, "--json"))
    assert [str(value) for value in columns["price mean"]] == [row[0] for row in printed[1:]]


def test_predictions_may_keep_columns(fitted, tmp_path):
    folder, _ = fitted
    lines = ["no;" + houses().splitlines()[0].replace(",", ";")]
    lines += [f"00{i};" + line.replace(",", ";").replace(".", ",") for i, line in enumerate(houses().splitlines()[1:])]
    (tmp_path / "new.csv").write_text("\n".join(lines) + "\n")
    model, table = str(folder / "houses-sparse.dgpax"), str(tmp_path / "new.csv")
    with pytest.warns(DgpaxWarning, match="Written otherwise than in the training data"):
        printed = list(csv.reader(io.StringIO(run("predict", model, table, "--keep", "no, colour"))))
    assert printed[0][:3] == ["no", "colour", "price mean"] and printed[2][:2] == ["001", "blue"]
    assert [row[2:] for row in printed[1:]] == list(
        csv.reader(io.StringIO(run("predict", model, str(folder / "houses.csv"))))
    )[1:]
    with pytest.warns(DgpaxWarning), pytest.raises(InputError, match="no column 'nothing'"):
        run("predict", model, table, "--keep", "nothing")


def test_no_output_overwrites_what_it_was_made_from(fitted):
    folder, _ = fitted
    model, table = folder / "houses-sparse.dgpax", folder / "houses.csv"
    before = model.read_bytes(), table.read_bytes()
    for command in ("predict", "report"):
        for output in (model, folder / "." / "houses.csv"):
            with pytest.raises(InputError, match="is a file that is read here, and would be lost"):
                run(command, str(model), str(table), "--output", str(output))
    assert (model.read_bytes(), table.read_bytes()) == before


def test_evaluate_scores_a_table(fitted):
    folder, _ = fitted
    words = ["evaluate", str(folder / "houses-sparse.dgpax"), str(folder / "houses.csv")]
    found = json.loads(run(*words, "--json"))
    assert found["rows"] == 40 and set(found["scores"]) >= {"rmse", "nlpd", "crps", "coverage"}
    assert "40 rows, target price" in run(*words)
    with pytest.raises(InputError, match=r"no column 'cost'\. It has: 'size"):
        run(*words, "--target", "cost")


def test_messages_name_the_column(fitted, tmp_path):
    folder, _ = fitted
    (tmp_path / "new.csv").write_text("size [m²],colour,age,built\n50,green,3,2001-01-01\n")
    with pytest.warns(DgpaxWarning, match="The column 'colour' has categories that the training data had not: 'green'"):
        run("predict", str(folder / "houses-sparse.dgpax"), str(tmp_path / "new.csv"))
    (tmp_path / "old.csv").write_text("size [m²],colour,age,built\nbig,red,3,2001-01-01\n")
    with pytest.raises(InputError, match=r"The column 'size \[m²\]' had numbers"):
        run("predict", str(folder / "houses-sparse.dgpax"), str(tmp_path / "old.csv"))


def test_an_unknown_word_is_an_error_of_one_sentence():
    result = RUNNER.invoke(app, ["fit", "energy", "--layers", "2", "--posterior", "stripes", "--num-inducing", "5"])
    assert isinstance(result.exception, UnknownNameError)
    assert "stripes-and-arrow" in str(result.exception)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["fit", "nothing"], 1, "error: 'nothing' is neither a file nor a named dataset"),
        (["fit", "missing.csv"], 1, "error: There is no file missing.csv"),
        (["predict", "[red]x.dgpax", "y.csv"], 1, "error: There is no file [red]x.dgpax."),
        (["fit", "energy", "--target", "y"], 1, "error: The target of energy is heating_load; got --target y."),
        (["fit", "energy", "--task", "guessing"], 1, "error: --task guessing isn't known"),
        (["fit", "energy", "--layers", "zero"], 2, "Usage"),
        (["nonsense"], 2, "Usage"),
        (["version"], 0, ""),
    ],
)
def test_exit_codes(monkeypatch, capsys, words, code, said):
    monkeypatch.setattr(sys, "argv", ["dgpax", *words])
    monkeypatch.setattr("warnings.showwarning", None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code or 0) == code
    errors = capsys.readouterr().err
    assert said in errors and "Traceback" not in errors
    assert code != 1 or errors.count("\n") == 1


def test_what_cannot_be_fitted(tmp_path):
    def refused(text: str, *words: str) -> str:
        (tmp_path / "t.csv").write_text(text)
        result = RUNNER.invoke(app, ["fit", str(tmp_path / "t.csv"), *words])
        assert isinstance(result.exception, InputError)
        return str(result.exception)

    names = "\n".join(f"{i**2},name {i},{i}" for i in range(30))
    assert "The column 'who' is text with" in refused(f"x,who,y\n{names}\n")
    assert "no column besides the target" in refused("y\n1\n2\n3\n4\n5\n6\n")
    assert "at least 5 rows" in refused("x,y\n1,2\n3,4\n")
    assert "at least 5 rows" in refused("x,y\n1,2\n3,4\n", "--test-fraction", "0.3")
    assert "no column 'z'" in refused("x,y\n1,2\n3,4\n", "--target", "z")
    assert "different labels" in refused("x,y\n" + "1,a\n" * 9)
    assert "use --task classification" in refused("x,y\n" + "1,a\n2,b\n" * 9, "--task", "regression")


def test_columns_that_number_the_rows_are_named(tmp_path):
    (tmp_path / "t.csv").write_text("row id,x,y\n" + "".join(f"{i + 1},{i**2},{i}\n" for i in range(10)))
    with pytest.warns(DgpaxWarning, match="The column 'row id' numbers the rows.*--ignore 'row id'"):
        read_source(str(tmp_path / "t.csv"), Choice())
    read_source(str(tmp_path / "t.csv"), Choice(ignore=("row id",)))
    (tmp_path / "t.csv").write_text("day,y\n" + "".join(f"{i + 1},{i}\n" for i in range(10)))
    read_source(str(tmp_path / "t.csv"), Choice())


def test_files_that_are_no_models(tmp_path):
    (tmp_path / "x.dgpax").write_bytes(b"nothing")
    with pytest.raises(ModelFileError, match="damaged"):
        dgpax.load_model(tmp_path / "x.dgpax")


def scored(method: str, density: float, crps: float = 1.0, seconds: float = 1.0) -> Scored:
    rng = np.random.default_rng(0)
    return Scored(method, 1.0, -density, crps, 0.9, 1.0, seconds, density + 0.01 * rng.normal(size=50))


def test_the_verdict_is_one_honest_sentence():
    shallow, worse = scored("exact GP", 0.0), scored("one-layer sparse GP", -1.0)
    boosting = scored("gradient boosting", -2.0, crps=0.5)
    assert verdict([scored("deep GP", 1.0), worse, shallow]).startswith("A deep GP pays on these rows: its log density")
    assert "1.00 ± 0.00 lower than the exact GP's" in verdict([scored("deep GP", -1.0), worse, shallow])
    found = verdict([scored("deep GP", 0.0), shallow, boosting])
    assert "doesn't clearly pay" in found and found.endswith("the best by CRPS is gradient boosting.")


def test_gradient_boosting_is_scored_by_its_quantiles():
    """Noise of variance 1 that no input explains: CRPS 1/√π, NLPD ½ log 2πe, 90% width 3.29."""
    rng = np.random.default_rng(0)
    train, test = (dgpax.dataset(np.zeros((size, 1)), rng.normal(size=size)) for size in (400, 2000))
    source = Source("noise", "", train, test, Encoding.of(np.zeros((400, 1))), "y", (), None)
    found = gradient_boosting(source, 1.0, 0)
    np.testing.assert_allclose(found.crps, 1.0 / np.sqrt(np.pi), rtol=0.05)
    np.testing.assert_allclose(found.nlpd, 0.5 * np.log(2.0 * np.pi * np.e), rtol=0.05)
    np.testing.assert_allclose([found.coverage, found.width], [0.9, 3.29], rtol=0.1)


def test_a_check_that_fails_is_reported():
    def broken():
        raise ArithmeticError("not finite")

    assert _tried("products", broken) == Check("products", False, "ArithmeticError: not finite")


@pytest.mark.slow
def test_fit_on_a_named_dataset(tmp_path):
    words = ["fit", "energy", "--inference", "sparse", "--num-inducing", "10", "--output", str(tmp_path)]
    output = run(*words)
    assert "energy, split 0: 691 rows to train, 77 held out" in output
    assert (tmp_path / "energy-sparse-0.png").stat().st_size > 10_000
    assert "<!doctype html>" in (tmp_path / "energy-sparse-0.html").read_text()
    found = json.loads(run("evaluate", str(tmp_path / "energy-sparse-0.dgpax"), "energy", "--json"))
    assert found["rows"] == 77
    plain = tmp_path / "plain.dgpax"
    dgpax.save(dgpax.load_model(tmp_path / "energy-sparse-0.dgpax").fit, plain)
    again = json.loads(run("evaluate", str(plain), "energy", "--target", "heating_load", "--json"))
    assert again["scores"] == found["scores"]


@pytest.mark.slow
def test_classification(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    kinds = np.where(x[:, 0] > 0.5, "cat", np.where(x[:, 1] > 0, "dog", "<b>cow</b>"))
    rows = "\n".join(f"{a:.3f},{b:.3f},{kind}" for (a, b), kind in zip(x, kinds, strict=True))
    (tmp_path / "pets.csv").write_text(f"a,b,kind\n{rows}\n")
    words = ["--output", str(tmp_path), "--json", "--num-inducing", "10"]
    found = json.loads(run("fit", str(tmp_path / "pets.csv"), *words))
    assert found["scores"]["accuracy"] > 0.6 and found["inference"] == "variational"
    printed = list(csv.reader(io.StringIO(run("predict", found["files"]["model"], str(tmp_path / "pets.csv")))))
    assert printed[0] == ["kind", "p(<b>cow</b>)", "p(cat)", "p(dog)"]
    assert {row[0] for row in printed[1:]} <= set(kinds)
    estimator = dgpax.DeepGPClassifier(num_layers=1, num_inducing=10, max_steps=50).fit(x, kinds)
    dgpax.save(estimator, tmp_path / "estimator.dgpax")
    (tmp_path / "x.csv").write_text("x0,x1\n" + "\n".join(f"{a!r},{b!r}" for a, b in x.tolist()))
    again = json.loads(run("predict", str(tmp_path / "estimator.dgpax"), str(tmp_path / "x.csv"), "--json"))
    assert again["y"] == estimator.predict(x).tolist()
    run("report", found["files"]["model"], str(tmp_path / "pets.csv"), "--output", str(tmp_path / "r.html"))
    assert "<b>cow" not in (tmp_path / "r.html").read_text()


@pytest.mark.slow
def test_compare_bench_and_doctor(tmp_path):
    (tmp_path / "houses.csv").write_text(houses(60))
    found = json.loads(run("compare", str(tmp_path / "houses.csv"), "--max-seconds", "1", "--json"))
    assert list(found["methods"])[-1] == "always the mean" and len(found["methods"]) == 5
    assert found["verdict"].startswith("A deep GP") and found["verdict"].endswith(".")
    sizes = json.loads(run("bench", "--calls", "2", "--json"))["sizes"]
    assert [one["rows"] for one in sizes] == [1000, 10000] and all(one["step_s"] > 0 for one in sizes)
    assert all(check["ok"] for check in json.loads(run("doctor", "--json")))
    assert "All is well." in run("doctor")
