"""The HTML report: it says what is true, and whatever it is given stays text."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from html.parser import HTMLParser

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import dgpax
from dgpax import report
from dgpax.distributions import Gaussian
from dgpax.errors import InputError
from dgpax.inference import LBFGS, NaturalGradient, Variational
from dgpax.likelihoods import BernoulliProbit, Poisson, Softmax
from dgpax.metrics import error_of_ranks
from dgpax.report import _classification
from dgpax.report._columns import data_section
from dgpax.report._drawn import crps_of_draws, judge_by_draws, randomised_ranks
from dgpax.report._html import tag
from dgpax.report._inputs import Input, inputs_of
from dgpax.report._judge import judge_probabilities
from dgpax.report._relevance import relevance
from dgpax.report._svg import spanning, ticks
from dgpax.report._text import number, percent, shown
from dgpax.report._verdict import about_error

ATTACKS = (
    "<script>alert(1)</script>", "</style><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onload='x",
    "<!-- ", "]]>", "&lt;b&gt;", "&#60;script&#62;", "javascript:alert(1)", "</title><h1>x", "<svg onload=alert(1)>",
    "\u202egnirts", "\x00null", "a\nb\tc", "a\u2028b", "日本語", "é́́", "😀" * 40, "\udcff", "x" * 10_000,
    "<" * 10_000, '"' * 500, "{style}", "%s%n", "a b", "../../etc/passwd", "C:\\con", "[red]x[/]", "<a href=//e>", " ",
)  # fmt: skip
HOSTILE = tuple(dict.fromkeys([*ATTACKS, *(f"{attack}{number}" for number, attack in enumerate(ATTACKS))]))[:50]
TAGS = (
    "html head meta title style body header main footer nav a h1 h2 h3 p b span section div table thead tbody tr th td "
)
TAGS += "pre figure figcaption svg path line rect text"
ATTRIBUTES = (
    "lang charset http-equiv content name class id aria-label href role viewbox preserveaspectratio d x y x1 x2 y1 y2 "
)
ATTRIBUTES += "width height transform text-anchor"
EMPTY = {"meta"}


class Reader(HTMLParser):
    """Which tags, attributes and texts a page has, and whether every tag is closed in its turn."""

    def __init__(self, page: str):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def handle_comment(self, data):
        raise AssertionError("a comment")

    def handle_pi(self, data):
        raise AssertionError("a processing instruction")


def check_harmless(page: str) -> Reader:
    read = Reader(page)
    assert read.tags <= set(TAGS.split())
    assert {name for name, _ in read.attributes} <= set(ATTRIBUTES.split())
    assert all(value.startswith("#") for name, value in read.attributes if name == "href")
    assert "url(" not in page and "@import" not in page
    page.encode("utf-8")
    return read


def rows(num_rows=40, num_inputs=2):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(num_rows, num_inputs))
    return dgpax.dataset(x, 3.0 * x[:, 0] + 0.1 * rng.normal(size=num_rows))


@pytest.fixture(scope="module")
def line():
    data = rows()
    return dgpax.fit(dgpax.gp_regression(data), data, engine=LBFGS(max_steps=30), progress=False), data


def hostile_page(fitted, data, places) -> str:
    """A page on which the names of some inputs, and all else that has a name, are hostile."""
    data = dataclasses.replace(data, input_names=tuple(HOSTILE[i] for i in places), output_names=(HOSTILE[places[-1]],))
    details = {name: name for name in HOSTILE}
    columns = [report.describe_categories(name, [name, None]) for name in HOSTILE]
    return report.page(fitted, data, data, title=HOSTILE[0], columns=columns, details=details)


def test_hostile_names_stay_text(line):
    read = check_harmless(hostile_page(*line, places=(0, 2)))
    text = "".join(read.texts)
    assert "<script>alert(1)</script>" in text and '"><img src=x onerror=alert(1)>' in text
    assert "(10,000 characters)" in text and "x" * 1001 not in text
    assert "\\u202e" in text and "\u202e" not in text and "\\udcff" in text
    policies = [value for name, value in read.attributes if name == "content" and "default-src" in value]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


@pytest.fixture(scope="module")
def hostile():
    data = rows(30, len(HOSTILE))
    fitted = dgpax.fit(dgpax.gp_regression(data), data, engine=LBFGS(max_steps=3), progress=False)
    return hostile_page(fitted, data, range(len(HOSTILE)))


def test_hostile_classes_stay_text():
    labels = np.arange(30.0) % len(HOSTILE[:3])
    judged = judge_probabilities(labels, np.full((30, 3), 1.0 / 3.0))
    data = dgpax.dataset(np.zeros((30, 1)), labels)
    parts = [*_classification.sections(judged, HOSTILE[:3], ""), data_section(data, None, None, HOSTILE[:3])]
    text = "".join(check_harmless(f"<main>{''.join(map(str, parts))}</main>").texts)
    assert "Reliability" in text and "log_loss" in text and text.count(HOSTILE[0]) >= 3


def test_the_report_says_what_the_metrics_say(line, tmp_path):
    fitted, data = line
    path = report.write(tmp_path / "new" / "report.html", fitted, data, data, details={"command": "dgpax fit"})
    page = path.read_text(encoding="utf-8")
    texts = check_harmless(page).texts
    wanted = dgpax.metrics.regression_report(data.y, dgpax.predict(fitted, data.x))
    found = report.scores(fitted, data)
    assert list(found) == ["rmse", "mae", "smse", "nlpd", "crps", "calibration_error", "coverage", "mean_width"]
    assert_allclose([found[name] for name in wanted], list(wanted.values()), rtol=1e-10)
    for name, value in found.items():
        assert name in texts and number(value) in texts
    for part in ("data", "training", "metrics", "calibration", "relevance", "layers", "parameters", "settings"):
        assert f'id="{part}"' in page and f'href="#{part}"' in page
    assert "likelihood.noise_variance" in texts and "dgpax fit" in texts
    assert page == report.page(fitted, data, data, details={"command": "dgpax fit"})


def test_a_mixture_says_so(line):
    fitted, data = line
    said = "Predictions are a mixture of 2 models"
    assert said in report.page(dgpax.fits.Ensemble([fitted, fitted], [0.3, 0.7]), data)
    assert said not in report.page(fitted, data)


def test_rows_that_are_missing(line):
    fitted, data = line
    assert "On held-out rows" not in report.page(fitted, data)
    assert "rows to train on" not in report.page(fitted, None, data)
    with pytest.raises(InputError, match="needs rows"):
        report.page(fitted, None)


def test_relevance_is_the_effect_of_one_standard_deviation(line):
    fitted, data = line
    found = relevance(fitted, data, inputs_of(data, None))
    assert found.effect is not None and found.low is not None and found.high is not None
    assert found.inverse_lengthscales is not None
    assert_allclose(found.effect[0], 3.0 * np.std(data.x[:, 0]), rtol=0.05)
    assert found.effect[1] < 0.1 * found.effect[0]
    assert np.all(found.low <= found.effect) and np.all(found.effect <= found.high)
    assert [values.shape for values in found.inverse_lengthscales] == [(1, 1), (1, 1)]


def test_a_judgement_of_any_distribution():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(500, 1))
    y[3] = np.nan
    own = Gaussian(jnp.zeros((500, 1)), jnp.ones((500, 1)))
    judged = report.judge_distribution(y, own, 0.7)
    wanted = dgpax.metrics.regression_report(y, own, 0.7)
    assert_allclose([judged.scores[name] for name in wanted], list(wanted.values()), rtol=1e-10)
    assert_allclose(judged.covered[0.5], float(dgpax.metrics.coverage(y, own, 0.5)))


def test_ranks_of_counts_are_uniform():
    """Randomised ranks of 4,000 counts among draws of the same Poisson: each tenth holds 400 ± 4 standard errors; and
    every rank lies between the share of draws below the count and that at or below it."""
    rng = np.random.default_rng(0)
    y, draws = rng.poisson(1.5, size=(4000, 1)).astype(float), rng.poisson(1.5, size=(50, 4000, 1)).astype(float)
    ranks = randomised_ranks(y, draws, rng.uniform(size=y.shape))
    counts, _ = np.histogram(ranks, bins=10, range=(0.0, 1.0))
    assert np.all(np.abs(counts - 400) < 4 * np.sqrt(4000 * 0.1 * 0.9))
    assert np.all(51 * ranks >= np.sum(draws < y, axis=0)) and np.all(51 * ranks <= np.sum(draws <= y, axis=0) + 1)
    assert np.isnan(randomised_ranks(np.array([[np.nan]]), np.zeros((3, 1, 1)), np.array([[0.5]])))


def test_the_crps_of_draws_is_that_of_all_pairs():
    rng = np.random.default_rng(1)
    y, draws = rng.normal(size=(5, 2)), rng.normal(size=(20, 5, 2))
    apart = np.sum(np.abs(draws[:, None] - draws[None]), axis=(0, 1)) / (20 * 19)
    assert_allclose(crps_of_draws(y, draws), np.mean(np.abs(draws - y), axis=0) - 0.5 * apart, rtol=1e-12)


def test_draws_judge_as_the_distribution_does(line):
    """Of Gaussian noise, where there is a formula: ranks by 1,000 draws within 4 standard errors, √(u(1−u)/1000)."""
    fitted, data = line
    exact = report.judge_distribution(data.y, dgpax.predict(fitted, data.x))
    tails = np.array([0.25, 0.75])
    drawn = judge_by_draws(fitted, np.asarray(data.x), np.asarray(data.y), tails, seed=0)
    spread = np.sqrt(exact.ranks * (1.0 - exact.ranks) / 1000) + 1 / 1000
    assert np.all(np.abs(drawn.ranks - exact.ranks) < 4 * spread)
    assert_allclose(np.mean(drawn.crps), exact.scores["crps"], rtol=0.05)
    assert_allclose(drawn.quantiles[1] - drawn.quantiles[0], exact.width(0.5), rtol=0.3)
    assert_allclose(error_of_ranks(jnp.asarray(exact.ranks)), exact.scores["calibration_error"], rtol=1e-10)


def test_categories_are_one_input():
    """f = 2 size + (−1, 1, 1)[colour]: the effect of colour is the standard deviation of (−1, 1, 1) by frequency."""
    table = {"size": np.arange(6.0), "colour": np.array(["a", "b", "c", "a", "b", "c"], dtype=object)}
    encoding = dgpax.data.Encoding.of(table)
    x = encoding.apply(table)
    inputs = inputs_of(dgpax.dataset(x, np.zeros(6)), encoding)
    assert inputs == (Input("size", (0,)), Input("colour", (1, 2, 3)))

    def f(places):
        return (places @ np.array([2.0, -1.0, 1.0, 1.0]))[..., None]

    size, colour = (one.effect(x, f(one.moves(x, x[:4]))) for one in inputs)
    assert_allclose(size, 2.0 * np.std(x[:, 0]), rtol=1e-12)
    assert_allclose(colour, np.std([-1.0, 1.0, 1.0]), rtol=1e-12)
    gaps = dgpax.data.Encoding.of({"size": np.array([1.0, np.nan, 3.0])})
    assert inputs_of(dgpax.dataset(np.zeros((2, 2)), np.zeros(2)), gaps) == (Input("size", (0,)),)
    with pytest.raises(InputError, match="makes 2 columns"):
        inputs_of(dgpax.dataset(x, np.zeros(6)), gaps)


def test_verdicts_on_errors():
    assert about_error(1.2, "3").mood == "bad" and about_error(0.01, "3").mood == "good"


def test_texts():
    assert shown("a" * 60) == "a" * 60 and len(shown("a" * 61)) < 70
    assert (number(0.00012345), number(-1234.56), number(1e7), number(np.nan)) == (
        "0.000123",
        "−1,235",
        "1e+07",
        "none",
    )
    assert (percent(0.9), percent(0.999), percent(1.0)) == ("90%", "99.9%", "100%")
    assert str(tag("p", "<&>", title='"')) == '<p title="&quot;">&lt;&amp;&gt;</p>'


def test_ticks_are_round_and_inside():
    assert_allclose(ticks(0.0, 1.0), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    for low, high in ((-3e-7, 8e-7), (12.0, 9e6), (-1.0, -0.99)):
        found = ticks(low, high)
        assert 2 <= len(found) <= 7 and low <= found[0] and found[-1] <= high
    assert spanning(np.array([np.nan])) < (2.0, 2.0)
    low, high = spanning(np.array([5.0, 5.0]))
    assert low < 5.0 < high


def test_columns():
    numbers = report.describe_numbers("a", np.array([1.0, np.nan, 3.0]))
    assert numbers.num_missing == 1 and numbers.content == "1 … 3, median 2"
    assert report.describe_numbers("a", np.full(3, 2.0)).content == "always 2: no influence"
    assert report.describe_numbers("a", np.array([np.nan])).content == "no value at all"
    texts = report.describe_categories("b", ["x", "x", "y", None])
    assert texts.num_missing == 1 and texts.content == "x (66.7%), y (33.3%)"


@pytest.mark.slow
def test_reports_of_other_models():
    rng = np.random.default_rng(0)
    x = np.linspace(-1.0, 1.0, 40)[:, None]
    few = NaturalGradient(max_steps=20)
    deep = dgpax.dataset(x, np.sin(3.0 * x))
    fitted = dgpax.fit(dgpax.deep_gp(deep, 2, 8), deep, Variational(), engine=few, progress=False)
    page = report.page(fitted, deep, deep)
    assert "All layers together" in page and "The function" in page and "Layer 1" in page
    counts = dgpax.dataset(x, rng.poisson(3.0, size=40))
    fitted = dgpax.fit(dgpax.deep_gp(counts, 1, 8, likelihood=Poisson()), counts, "variational", engine=few)
    page_of_counts = report.page(fitted, counts, counts)
    assert "The likelihood is Poisson" in page_of_counts and "(PIT)" in page_of_counts
    assert 0.8 < report.scores(fitted, counts)["coverage"] <= 1.0
    latent = dgpax.fit(dgpax.deep_gp(deep, 1, 8, num_latents=1), deep, "variational", engine=few)
    assert "can't be said" in report.page(latent, deep, deep)
    three = dgpax.dataset(x, np.arange(40.0) % 3)
    fitted = dgpax.fit(dgpax.deep_gp(three, 1, 8, likelihood=Softmax(3)), three, "variational", engine=few)
    check_harmless(report.page(fitted, three, three, classes=HOSTILE[:3]))
    two = dgpax.dataset(x, x[:, 0] > 0)
    fitted = dgpax.fit(dgpax.deep_gp(two, 1, 8, likelihood=BernoulliProbit()), two, "variational", engine=few)
    for text in (page, report.page(fitted, two, two, classes=("no", "yes"))):
        check_harmless(text)


@pytest.mark.slow
def test_fifty_hostile_inputs(hostile):
    text = "".join(check_harmless(hostile).texts)
    assert all(shown(name) in text for name in HOSTILE)


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_the_screen_without_a_word_from_the_console(hostile, tmp_path, width, scheme):
    (tmp_path / "report.html").write_text(hostile, encoding="utf-8")
    picture, log = screenshot(tmp_path, width, scheme)
    assert "CONSOLE" not in log
    paper = {"light": (251, 250, 248), "dark": (18, 21, 27)}[scheme]
    assert picture.shape[1] == width
    assert_allclose(picture[:, -6:], np.broadcast_to(paper, picture[:, -6:].shape), atol=1)


def screenshot(folder, width: int, scheme: str, page: str = "report.html") -> tuple[np.ndarray, str]:
    from matplotlib.image import imread

    flags = (
        "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync "
        "--disable-component-update --hide-scrollbars --enable-logging=stderr"
    )
    command = ["chromium", *flags.split(), f"--user-data-dir={folder / 'profile'}", f"--window-size={width},15000"]
    command += [f"--blink-settings=preferredColorScheme={'01'[scheme == 'light']}"]
    command += [f"--screenshot={folder / 'page.png'}", f"file://{folder / page}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return np.round(255.0 * imread(folder / "page.png")[..., :3]), re.sub(r".*dbus.*\n", "", done.stderr)
