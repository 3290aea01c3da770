"""The benchmarks run, their files say what was measured, and docs/results.md says what the files say."""

from __future__ import annotations

import json
import platform
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))  # benchmarks isn't installed

from benchmarks import (  # noqa: E402
    _framework_steps,
    _record,
    _tables,
    bounds,
    design,
    dsvi,
    first,
    framework,
    kernels,
    memory,
    people,
    regression,
    report,
    scale,
    star_pairs,
    star_studies,
    star_tables,
    steps,
    stride,
)
from dgpax.inference import Gradient, NaturalGradient, Settling  # noqa: E402

FIT = {"kind": "fit", "dataset": "energy", "model": "exact", "library": "dgpax", "split": 0, "rmse": 0.5}
FIT |= {"log_likelihood": -0.7, "objective": 10.0, "steps": 3, "converged": True}
FIT |= {"seconds_cold": 2.0, "seconds_warm": 1.0}


def write(folder: Path, *records, command="python -m benchmarks.regression") -> Path:
    return _record.write(
        "regression",
        records,
        command=command,
        precision="float64",
        seeds=[0],
        seconds=1.25,
        peers={"GPflow": {"gpflow": "2.11.2"}},
        folder=folder,
    )


def test_the_pages_are_what_the_files_say():
    for path, text in report.pages().items():
        assert path.read_text("utf-8") == text, f"{path}: run python -m benchmarks.report"


def test_a_benchmark_without_a_page_is_named(tmp_path):
    content = json.loads(write(tmp_path, FIT).read_text("utf-8"))
    (tmp_path / "a.json").write_text(json.dumps(content | {"benchmark": "nowhere"}))
    with pytest.raises(ValueError, match="No page is named for nowhere"):
        report.pages(tmp_path)


def test_the_page_without_files(tmp_path):
    assert "no results yet" in report.render(tmp_path)


def test_a_result_file_holds_what_it_must(tmp_path):
    path = write(tmp_path, FIT | {"rmse": float("nan")})
    content = json.loads(path.read_text("utf-8"))
    assert set(content) == {
        "schema", "benchmark", "command", "commit", "dirty", "date", "machine", "versions", "peers", "precision",
        "seeds", "seconds", "records",
    }  # fmt: skip
    assert re.fullmatch(r"regression-\d{4}-\d\d-\d\d-[0-9a-z]{7}\.json", path.name)
    assert {"python", "jax", "numpy", "dgpax"} == set(content["versions"])
    assert content["records"] == [FIT | {"rmse": None}]
    assert content["date"].endswith("+00:00")


def test_a_result_file_is_deterministic_and_names_no_place(tmp_path):
    path = write(tmp_path, FIT)
    text = path.read_text("utf-8")
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    assert str(Path.home()) not in text
    assert str(ROOT) not in text
    assert f'"{platform.node()}"' not in text


def test_commands_are_portable():
    words = ["--quick", "--peer-python", "/opt/x/bin/python", "--results=/tmp/x", "--splits", "0", "1"]
    expected = "python -m benchmarks.regression --quick --peer-python PATH --results=PATH --splits 0 1"
    assert _record.command_line("benchmarks.regression", words) == expected


def test_the_newest_file_counts(tmp_path):
    old = write(tmp_path, FIT)
    content = json.loads(old.read_text("utf-8"))
    older = content | {"date": "2020-01-01T00:00:00+00:00", "records": [FIT | {"rmse": 99.0}]}
    (tmp_path / "regression-zzz.json").write_text(json.dumps(older), "utf-8")
    page = report.render(tmp_path)
    assert "| energy | exact | dgpax | 0.500 |" in page
    assert "99.000" not in page
    assert f"From `{old.name}`" in page


def test_a_file_of_another_schema_is_refused(tmp_path):
    path = write(tmp_path, FIT)
    path.write_text(path.read_text("utf-8").replace('"schema": 1', '"schema": 0'), "utf-8")
    with pytest.raises(ValueError, match="schema 0"):
        report.render(tmp_path)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.25], "1.25"),
        ([1.0, 2.0, 3.0], "2.00 ± 0.58"),
        ([2.0, 2.0], "2.00"),
        ([1.0, None], "1.00 (1 of 2)"),
        ([None], "–"),
    ],
)
def test_averages(values, text):
    assert _tables.average(values, ".2f") == text


def test_a_table_of_several_files_says_where_each_row_is_from():
    columns, published = (_tables.Column("score", "score", ".1f"),), ({"dataset": "a", "by": "paper", "score": "3"},)
    table = _tables.Table("Scores", "fit", ("dataset", "by"), columns, published)
    one, two = ([{"kind": "fit", "dataset": name, "by": "us", "score": score}] for name, score in (("b", 1), ("a", 2)))
    text = _tables.markdown(table, {"1": one, "2": two})
    assert text.splitlines()[2:] == ["| a | us | 2.0 | 2 |", "| a | paper | 3 | – |", "| b | us | 1.0 | 1 |"]
    assert _tables.markdown(table, {"1": two}) == "\n".join(
        ["| dataset | by | score |", "| --- | --- | ---: |", "| a | us | 2.0 |", "| a | paper | 3 |"]
    )


def test_a_table_of_means_says_of_how_many_runs():
    table = _tables.Table("Scores", "fit", ("dataset",), (_tables.Column("score", "score", ".1f"),))
    records = [{"kind": "fit", "dataset": name, "score": score} for name, score in (("a", 1), ("b", 2), ("a", 2))]
    assert _tables.markdown(table, {"1": records}).splitlines() == [
        "| dataset | score | runs |",
        "| --- | ---: | ---: |",
        "| a | 1.5 ± 0.5 | 2 |",
        "| b | 2.0 | 1 |",
    ]


def test_tables_without_records_are_left_out(tmp_path):
    write(tmp_path, FIT)
    titles = [line.removeprefix("### ") for line in report.render(tmp_path).splitlines() if line.startswith("### ")]
    assert titles == [table.title for table in regression.TABLES if table.kind == "fit"]


def test_published_numbers_stand_beside_their_dataset_only(tmp_path):
    write(tmp_path, FIT)
    page = report.render(tmp_path)
    assert (
        "| energy | SGP, 500 points | Salimbeni & Deisenroth 2017, Tables 7 and 8 (20 splits) | 0.47 ± 0.02 |" in page
    )
    assert "concrete" not in page


def test_ratios():
    theirs, slow = {"seconds_cold": 3.0, "seconds_warm": 4.0}, {"seconds_cold": 2.0, "seconds_warm": 8.0}
    assert regression.ratios(theirs, slow) == {"ratio_cold": 1.5, "ratio_warm": 0.5}
    failed = regression.scored(None, None)  # pyright: ignore[reportArgumentType]
    assert set(regression.ratios(theirs, failed).values()) == {None}


@pytest.mark.slow
def test_a_quick_run_without_a_peer(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("DGPAX_PEER_PYTHON", raising=False)
    path = regression.main(["--quick", "--models", "exact", "--results", str(tmp_path)])
    assert path is not None
    assert "GPflow is skipped" in capsys.readouterr().out
    (record,) = json.loads(path.read_text("utf-8"))["records"]
    assert set(record) == set(FIT)
    assert record["steps"] == 5
    assert 0 < record["rmse"] < 30
    assert "| energy | exact | dgpax |" in report.render(tmp_path)


@pytest.mark.peers
def test_gpflow_agrees(tmp_path):
    path = regression.main(["--quick", "--models", "exact", "k-means", "--results", str(tmp_path)])
    assert path is not None
    content = json.loads(path.read_text("utf-8"))
    agreement = [record for record in content["records"] if record["kind"] == "agreement"]
    assert len(agreement) == 2
    assert all(record[q] < 1e-6 for record in agreement for q in regression.QUANTITIES)
    assert content["peers"]["GPflow"]["gpflow"].startswith("2.")
    assert [record["kind"] for record in content["records"]].count("speed") == 2


def test_growth_is_a_power():
    cases = [("rows", 1000, 2, 3.0), ("rows", 4000, 2, 6.0), ("layers", 1000, 2, 3.0), ("layers", 1000, 4, 6.0)]
    records = [
        {"kind": "growth", "case": case, "rows": rows, "layers": layers, "milliseconds": milliseconds}
        for case, rows, layers, milliseconds in cases
    ]
    found = {record["case"]: record["exponent"] for record in steps.exponents(records)}
    assert found == pytest.approx({"layers": 1.0, "rows": 0.5})


def test_steps_are_compared_on_the_same_device_only():
    def step(library, device, milliseconds):
        return {"kind": "step", "case": "large", "library": library, "device": device, "milliseconds": milliseconds}

    records = [step("dgpax", "gpu", 2.0), step("GPflux", "cpu", 9.0), step("GPyTorch", "gpu", 5.0)]
    mixed = records[0] | {"case": "large, mixed", "milliseconds": 1.0}
    cases = [*steps.CASES["large"], *steps.CASES["mixed"]]
    found = {(r["case"], r["library"]): r["ratio"] for r in steps.ratios(cases, [*records, mixed])}
    assert found == {("large", "GPyTorch"): 2.5, ("large, mixed", "GPyTorch"): 5.0}


@pytest.mark.slow
def test_libraries_take_the_same_steps(tmp_path):
    """With dgpax and those peers whose interpreters the environment names."""
    path = steps.main(["--quick", "--cases", "small", "--rounds", "1", "--results", str(tmp_path)])
    assert path is not None
    records = [record for record in json.loads(path.read_text("utf-8"))["records"] if record["kind"] == "step"]
    assert records[0]["library"] == "dgpax"
    for record in records:
        assert 0 < record["fastest"] <= record["milliseconds"]
        assert record["elbo_start"] == pytest.approx(records[0]["elbo_start"], rel=1e-6)
        assert record["elbo_end"] == pytest.approx(records[0]["elbo_end"], rel=0.05)
        assert record["elbo_end"] > record["elbo_start"]
    assert "| small | 50 | 2 | dgpax |" in report.render(tmp_path)


def test_first_results_are_medians_of_rounds(tmp_path, monkeypatch):
    """Where what finds a cache that others have filled takes a quarter, and the second round is twice as slow."""
    rounds = []

    def seconds(self, script, *words, cache=None, code=0):
        rounds.append(script == first.ENGINES)
        warm = cache is not None and cache.exists()
        if cache is not None:
            cache.mkdir(exist_ok=True)
        return (0.25 if warm else 1.0) * (2.0 if sum(rounds) == 2 else 1.0)

    monkeypatch.setattr(first.Processes, "seconds", seconds)
    path = first.main(["--results", str(tmp_path)])
    assert path is not None and sum(rounds) == 3
    records = json.loads(path.read_text("utf-8"))["records"]
    assert {record["kind"] for record in records} == {table.kind for table in first.TABLES}
    assert {record["second_of_first"] for record in records if "second_of_first" in record} == {0.25}
    page = report.render(tmp_path)
    assert "| dgpax fit | 1.0 | 0.2 | 0.25 | 1.0 |" in page and "| import dgpax | 1.00 | 1.00 |" in page


@pytest.mark.slow
def test_a_quick_run_of_first(tmp_path):
    path = first.main(["--quick", "--results", str(tmp_path)])
    assert path is not None
    records = json.loads(path.read_text("utf-8"))["records"]
    assert all(record["second_of_first"] < 0.9 for record in records if "second_of_first" in record)


def test_bounds_are_smoothed_over_the_last_steps():
    assert bounds.smoothed(np.array([1.0, 3.0, 5.0, 7.0]), window=2) == pytest.approx([1.0, 2.0, 4.0, 6.0])


def test_the_first_step_above_a_level():
    assert bounds.first_above(np.array([1.0, 2.0, 4.0, 3.0]), 2.0) == 3
    assert bounds.first_above(np.array([1.0, 2.0]), 2.0) is None


def test_compilation_is_left_out_of_the_seconds():
    """Three calls of two steps: the first took 100 s, the others 4 s each."""
    assert bounds.times([100.0, 104.0, 108.0], 2, 6) == pytest.approx([2.0, 4.0, 6.0, 8.0, 10.0, 12.0])


@pytest.mark.slow
def test_a_quick_run_of_bounds(tmp_path):
    path = bounds.main(["--quick", "--datasets", "energy", "--results", str(tmp_path)])
    records = json.loads(path.read_text("utf-8"))["records"]
    assert {record["kind"] for record in records} == {"crossing", "stability", "curve"}
    last = {r["by"]: r["step"] for r in records if r["kind"] == "curve"}
    assert last == {"adam": 12, "natural": 8}
    assert all(r["lowest"] <= r["bound"] <= r["highest"] for r in records if r["kind"] == "curve")
    assert f"## {bounds.TITLE}" in report.render(tmp_path)


@pytest.mark.parametrize("word", dsvi.ENGINES)
def test_engines_of_dsvi_are_what_they_are_called(word):
    plan = replace(dsvi.PARTS["naval"], engine=word, steps=1000)
    engine = plan.make_engine()
    steps = NaturalGradient if "natural" in word else Gradient
    if "falling" in word:
        assert isinstance(engine, Settling)
        assert engine.settle_steps == 600 and engine.patience == engine.max_steps
        engine = engine.engine
    assert isinstance(engine, steps)
    assert dsvi.ENGINES[word] in plan.by(np.dtype(float)) and plan.by(np.dtype(float)).endswith("batches of 1,000")


@pytest.mark.slow
def test_a_quick_run_of_dsvi(tmp_path):
    words = ["--part", "quick", "--layers", "2", "--splits", "1", "--steps", "4", "--precision", "float32"]
    path = dsvi.main([*words, "--untimed", "--name", "try", "--results", str(tmp_path)])
    assert path.name.startswith("dsvi-try-")
    (record,) = json.loads(path.read_text("utf-8"))["records"]
    assert record["by"] == "dgpax, natural gradients, float32"
    assert record["seconds"] is None
    assert record["rejected_steps"] == 0
    assert f"| energy | 2 | {record['by']} | {record['log_likelihood']:.3f} |" in report.render(tmp_path)


@pytest.mark.slow
def test_rows_from_disk_train_what_rows_from_memory_do(tmp_path):
    path = scale.main(["--rows", "30000", "--steps", "50", "--results", str(tmp_path)])
    assert path is not None
    held, disk = json.loads(path.read_text("utf-8"))["records"]
    assert (held["source"], disk["source"], disk["rows"]) == ("memory", "disk", 30_000)
    assert held["rmse"] == pytest.approx(disk["rmse"], rel=1e-6)
    assert f"## {scale.TITLE}" in report.render(tmp_path)


@pytest.mark.slow
def test_the_memory_of_a_prediction_holds_its_answer(tmp_path):
    path = memory.main(["--rows", "20000", "--samples", "100", "--results", str(tmp_path)])
    assert path is not None
    (record,) = json.loads(path.read_text("utf-8"))["records"]
    assert record["answer_gigabytes"] == pytest.approx(20_000 * 100 * 2 * 8 / 1e9, rel=1e-3)
    assert record["peak_gigabytes"] < record["answer_gigabytes"] + 0.5


def test_an_exponent_is_that_of_the_largest_sizes():
    assert _framework_steps.exponent([1, 2, 4, 8], [7.0, 1.0, 8.0, 64.0]) == pytest.approx(3.0)


@pytest.mark.slow
def test_a_quick_run_of_the_framework(tmp_path):
    path = framework.main(["--quick", "--results", str(tmp_path)])
    assert path is not None
    records = json.loads(path.read_text("utf-8"))["records"]
    assert {record["kind"] for record in records} == {table.kind for table in framework.TABLES}
    assert all(record["seconds"] > 0 for record in records if "seconds" in record)
    page = report.render(tmp_path)
    assert f"## {framework.TITLE}" in page
    assert "| pairs | P | 1 |" in page


def test_extrapolation_tests_on_one_side_of_the_training_rows():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(41, 3)), rng.normal(size=(41, 1))
    train, test = star_tables.extrapolation(x, y, seed=3)
    assert (train.num_rows, test.num_rows) == (21, 20)
    direction = np.random.RandomState(3).normal(size=3) / x.std(axis=0)
    assert np.min(np.asarray(train.x) @ direction) >= np.max(np.asarray(test.x) @ direction)


def test_posteriors_are_compared_in_pairs(tmp_path):
    def fits(dataset, model, values, steps=10):
        labels = {"kind": "fit", "dataset": dataset, "setting": "extrapolation", "model": model, "by": "dgpax"}
        labels |= {"steps": steps}
        return [labels | {"split": split, "log_likelihood": value} for split, value in enumerate(values)]

    records = fits("boston", "stripes-and-arrow-2", [1.0, 2.0, 3.5]) + fits("boston", "mean-field-2", [0.5, 1.0, 2.0])
    records += fits("energy", "mean-field-2", [1.0, 2.0]) + fits("energy", "stripes-and-arrow-2", [0.9, 4.0, 7.0])
    given = {"precision": "float64", "seeds": [0], "seconds": 0.0, "peers": {}, "folder": tmp_path}
    records += fits("boston", "mean-field-3", [0.0, 1.0], 20) + fits("boston", "stripes-and-arrow-3", [0.0, 1.0])
    _record.write("star_tables", records, command="", **given)
    pooled, boston, energy = json.loads(star_pairs.main(["--results", str(tmp_path)]).read_text("utf-8"))["records"]
    assert boston["difference"] == pytest.approx(1.0)
    assert boston["p_value"] == pytest.approx(0.0741799, abs=1e-6)
    assert (boston["better"], boston["splits"], boston["p_ranks"]) == (3, 3, pytest.approx(0.25))
    assert (energy["better"], energy["splits"]) == (1, 2)
    assert (pooled["dataset"], pooled["better"], pooled["splits"]) == ("all", 4, 5)
    assert "difference" not in pooled


def test_kernels_are_shown_by_their_time(capsys):
    events = [
        SimpleNamespace(name=name, duration_ns=ns) for name, ns in (("short", 2e4), ("long", 1e6), ("short", 4e4))
    ]
    planes = [SimpleNamespace(name="/device:GPU:0", lines=[SimpleNamespace(name="Stream", events=events)])]
    kernels.show(SimpleNamespace(planes=[*planes, SimpleNamespace(name="/host:CPU", lines=[])]), top=2)
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "Stream: 53.0 us, 0 calls"
    assert [line.split() for line in lines] == [
        ["50.00", "us", "0.1", "x", "long"],
        ["3.00", "us", "0.1", "x", "short"],
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Constant columns")
def test_quick_studies_of_coupled_posteriors(tmp_path):
    star_studies.main(["--quick", "--results", str(tmp_path)])
    page = report.render(tmp_path)
    assert page.count("| stripes-and-arrow |") == 2 * star_studies.BINS
    assert "| sampled | 4 |" in page


@pytest.mark.slow
def test_a_quick_run_of_stride(tmp_path):
    path = stride.main(["--quick", "--part", "gains", "--results", str(tmp_path)])
    (record,) = json.loads(path.read_text("utf-8"))["records"]
    assert record["seconds"] > 0
    assert "| 500 | 10 | 50 |" in report.render(tmp_path)


@pytest.mark.slow
def test_a_first_result_for_people(tmp_path):
    path = people.main(["--part", "first", "--rows", "40", "--name", "small", "--results", str(tmp_path)])
    assert path.name.startswith("people-small-") and not (tmp_path / "table.npz").exists()
    (record,) = json.loads(path.read_text("utf-8"))["records"]
    assert record["import_seconds"] + record["fit_seconds"] + record["predict_seconds"] < record["seconds"]
    assert 0.5 <= record["coverage"] <= 1.0 and 0.9 < record["rmse"] < 10.0
    assert "| 40 | 8 |" in report.render(tmp_path)


@pytest.mark.slow
def test_design_goes_on_after_it_was_stopped(tmp_path):
    words = ["--methods", "random", "--functions", "higdon", "--runs", "12", "--work", str(tmp_path / "runs")]
    words += ["--results", str(tmp_path / "results")]
    design.main([*words, "--seeds", "0"])
    (kept,) = (tmp_path / "runs").glob("*.json")
    kept.write_text(kept.read_text().replace('"seed": 0', '"seed": 0, "kept": true'))
    path = design.main([*words, "--seeds", "0", "1"])
    records = json.loads(path.read_text("utf-8"))["records"]
    assert [record.get("kept") for record in records] == [True, None]
    assert all(0.0 <= record["regret"] < 3.0 for record in records)
    assert "| higdon | 12 | random |" in report.render(tmp_path / "results")
