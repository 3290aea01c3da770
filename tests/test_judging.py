"""Judged on rows that a fit hadn't seen, then trained on all of them."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dgpax
from dgpax import report
from dgpax.cli._judging import judge, plan
from dgpax.cli._source import Choice
from dgpax.distributions import Gaussian
from dgpax.errors import InputError, UnknownNameError
from dgpax.inference import LBFGS
from dgpax.report import Judgement, judgement, pooled
from dgpax.report._judge import judge_probabilities


def written(folder, num_rows: int) -> str:
    """Dates in any order, a column that names the rows, and remarks above the names."""
    days = np.random.default_rng(0).permutation(num_rows)
    rows = [f"H{i},{np.datetime64('2020-01-01') + day},{day % 7},{day % 7 + i % 2}.5" for i, day in enumerate(days)]
    (folder / "t.csv").write_text("my rows\n\nid,day,x,y\n" + "\n".join(rows) + "\n")
    return str(folder / "t.csv")


pytestmark = pytest.mark.filterwarnings("ignore:Line 1 above the table left out")
IGNORED = ("id", "day")


def test_few_rows_are_judged_fold_by_fold_and_many_by_a_fifth(tmp_path):
    few = plan(written(tmp_path, 53), Choice(ignore=IGNORED), False)
    assert_array_equal(np.sort(np.concatenate(few.places)), np.arange(53))
    assert {source.test.num_rows for source in few.splits} == {10, 11} and few.num_fits == 6
    assert few.whole is not None and few.whole.train.num_rows == 53
    many = plan(written(tmp_path, 250), Choice(ignore=IGNORED), False)
    assert [source.test.num_rows for source in many.splits] == [50]
    assert many.whole is not None and many.whole.train.num_rows == 250
    assert "250 rows to train, judged by 50 rows held out at random" in many.in_short
    assert len(plan(written(tmp_path, 250), Choice(ignore=IGNORED, test_fraction=0.0), False).splits) == 5


def test_the_old_way_keeps_rows_from_the_model(tmp_path):
    work = plan(written(tmp_path, 50), Choice(ignore=IGNORED), True)
    assert work.whole is None and work.saved.train.num_rows == 40 and work.num_fits == 1
    with pytest.raises(InputError, match="--test-fraction 0 holds nothing out"):
        plan(written(tmp_path, 50), Choice(ignore=IGNORED, test_fraction=0.0), True)
    with pytest.raises(UnknownNameError, match="random, last"):
        plan(written(tmp_path, 50), Choice(hold_out="first"), False)


def test_the_last_rows_are_those_of_the_last_days(tmp_path):
    work = plan(written(tmp_path, 60), Choice(ignore=IGNORED, hold_out="last"), False)
    assert work.found is not None and "the last 12 rows" in work.how
    days = work.found.table.columns["day"].values
    held_out = set(work.places[0].tolist())
    assert max(days[i] for i in range(60) if i not in held_out) < min(days[i] for i in held_out)


def test_rows_are_judged_by_fits_that_had_not_seen_them(tmp_path):
    work, trained = plan(written(tmp_path, 25), Choice(ignore=IGNORED), False), []

    def train(source, which):
        trained.append((source.train.num_rows, which))
        return dgpax.fit(dgpax.gp_regression(source.train), source.train, engine=LBFGS(max_steps=2), progress=False)

    fitted, judged = judge(work, train, seed=0)
    assert [rows for rows, _ in trained] == [20] * 5 + [25] and trained[-1][1] == "Fit 6 of 6, on all rows"
    assert fitted.report.num_rows == 25 and judged.data.num_rows == 25
    assert isinstance(judged.scored, report.Regression)
    assert_allclose(judged.scored.observed, judged.data.y)
    assert judged.lines == tuple(range(4, 29)) and judged.names is not None
    assert judged.names[0] == "id" and judged.names[1][:2] == ("H0", "H1")
    page = report.page(fitted, work.saved.train, judged, encoding=work.saved.encoding)
    assert "line of the file" in page and "cross-validation in 5 folds" in page and ">H" in page
    assert "What the verdict rests on" in page and "trained on all rows" in page


def test_folds_are_scored_as_one():
    """All scores of a distribution are those of its rows in two parts, put together in another order."""
    rng = np.random.default_rng(0)
    y, mean, sd = rng.normal(size=(30, 2)), rng.normal(size=(30, 2)), rng.uniform(0.5, 2.0, size=(30, 2))
    y[3, 1] = np.nan
    data = dgpax.data.Dataset(jnp.zeros((30, 1)), jnp.asarray(y))
    line = dgpax.dataset(np.arange(4.0)[:, None], np.arange(4.0))
    fitted = dgpax.fit(dgpax.gp_regression(line), line, engine=LBFGS(max_steps=1), progress=False)

    def part(rows):
        q = Gaussian(jnp.asarray(mean[rows]), jnp.asarray(sd[rows] ** 2))
        of = dataclasses.replace(data, x=data.x[rows], y=data.y[rows])
        return Judgement(report.judge_distribution(of.y, q), of, (fitted.report,))

    order = rng.permutation(30)
    together = pooled([part(order[:11]), part(order[11:])], np.argsort(order), data)
    whole = part(np.arange(30))
    assert isinstance(together.scored, report.Regression) and isinstance(whole.scored, report.Regression)
    assert_allclose(list(together.scored.scores.values()), list(whole.scored.scores.values()), rtol=1e-10)
    assert_allclose(together.scored.ranks, whole.scored.ranks)
    assert together.scored.covered == pytest.approx(whole.scored.covered) and len(together.reports) == 2
    labels, p = rng.integers(3, size=30).astype(float), rng.dirichlet(np.ones(3), size=30)
    parts = [Judgement(judge_probabilities(labels[rows], p[rows]), data, ()) for rows in (order[:9], order[9:])]
    scored = pooled(parts, np.argsort(order), data).scored
    assert scored.scores == pytest.approx(judge_probabilities(labels, p).scores)
    assert judgement(fitted, line).unfinished is not None
