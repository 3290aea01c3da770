"""What comes round in dates: found in time series and nowhere else, and known beyond their end."""

from __future__ import annotations

import datetime

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import dgpax
from dgpax.data import Encoding
from dgpax.errors import InputError, UnknownNameError
from dgpax.recipes import Recipe, Rows, plan
from dgpax.report._inputs import AROUND, Input, inputs_of

START = datetime.datetime(2020, 1, 1)


def every(count: int, **step: float) -> list[datetime.datetime]:
    return [START + number * datetime.timedelta(**step) for number in range(count)]


def months(count: int, apart: int = 1) -> list[datetime.datetime]:
    return [datetime.datetime(2010 + apart * i // 12, 1 + apart * i % 12, 1) for i in range(count)]


def random_days(count: int, within: int) -> list[datetime.datetime]:
    days = np.random.default_rng(0).integers(within, size=count)
    return [START + datetime.timedelta(days=int(day)) for day in days]


def table(dates) -> dict[str, np.ndarray]:
    return {"when": np.array(dates, dtype=object), "x": np.arange(float(len(dates)))}


DAY, WEEK, YEAR = "time of day", "weekday", "season"
SERIES = {
    "days": (every(100, days=1), (WEEK,)),
    "two years of days": (every(800, days=1), (WEEK, YEAR)),
    "days of business": ([day for day in every(280, days=1) if day.weekday() < 5], (WEEK,)),
    "hours": (every(300, hours=1), (DAY,)),
    "six weeks of hours": (every(1000, hours=1), (DAY, WEEK)),
    "every third hour": (every(100, hours=3), (DAY,)),
    "minutes": (every(3000, minutes=5), (DAY,)),
    "months": (months(60), (YEAR,)),
    "a year of months": (months(12), ()),
    "quarters": (months(40, 3), (YEAR,)),
    "weeks": (every(150, days=7), (YEAR,)),
    "years": (months(40, 12), ()),
    "birthdays": (random_days(500, 60 * 365), ()),
    "one day": ([START] * 5, ()),
}


@pytest.mark.parametrize("name", SERIES)
def test_what_comes_round(name):
    dates, cycles = SERIES[name]
    encoding = Encoding.of(table(dates))
    assert encoding.columns[0].cycles == cycles
    assert encoding.apply(table(dates)).shape == (len(dates), 2 + 2 * len(cycles))


def test_places_on_circles():
    """A day later is the same time of day, a week later the same weekday; all lie on the unit circle."""
    dates = [None if number == 3 else date for number, date in enumerate(every(1000, hours=1))]
    encoding = Encoding.of(table(dates))
    assert encoding.output_names[:4] == ("when", "when missing", "when time of day (cos)", "when time of day (sin)")
    assert encoding.circles == {"when weekday": (4, 5), "when time of day": (2, 3)} and encoding.gaps == (1,)
    x = encoding.apply(table(dates))
    for places, period in ((slice(2, 4), 24), (slice(4, 6), 168)):
        assert_allclose(x[10, places], x[10 + period, places], atol=1e-9)
        assert np.max(np.abs(x[10, places] - x[10 + period // 2, places])) > 1.0
        assert_allclose(np.sum(x[:, places] ** 2, axis=1), 1.0)


def test_a_report_moves_around_the_circle():
    dates = every(100, days=1)
    encoding = Encoding.of(table(dates))
    x = encoding.apply(table(dates))
    inputs = inputs_of(dgpax.dataset(x, np.zeros(100)), encoding)
    assert inputs == (Input("when", (0,)), Input("x", (3,)), Input("when weekday", (1, 2), comes_round=True))
    moved = inputs[2].moves(x, x[:5])
    assert moved.shape == (AROUND, 5, 4)
    assert_allclose(inputs[2].effect(x, moved[..., 1:2]), np.sqrt(0.5), rtol=1e-12)


def weekly(count: int) -> tuple[pl.DataFrame, np.ndarray]:
    dates = every(count, days=1)
    return pl.DataFrame({"day": dates}), np.array([3.0 * (date.weekday() >= 5) for date in dates])


def test_what_comes_round_is_known_beyond_the_end():
    """Three weeks after 12 of them, weekends are told from weekdays, by a kernel of their own."""
    known, y = weekly(84)
    later, wanted = weekly(105)
    model = dgpax.DeepGPRegressor(inference="exact").fit(known, y)
    error = model.predict(later[84:]) - wanted[84:]
    assert np.sqrt(np.mean(error**2)) < 0.5


def test_kernels_by_a_word():
    rng = np.random.default_rng(0)
    rows = Rows(rng.normal(size=(30, 2)), rng.normal(size=(30, 1)))
    for word, kind in (("rbf", "RBF"), ("matern12", "Matern12"), ("matern52", "Matern52")):
        for inference in ("exact", "sparse", "variational"):
            model = plan(Recipe(inference, kernel=word, num_inducing=4), rows).model
            kinds = {
                type(part).__name__
                for layer in model.layers
                for part in getattr(layer.kernel, "kernels", [layer.kernel])
            }
            assert kind in kinds and (word == "rbf" or "RBF" not in kinds)
    with pytest.raises(UnknownNameError, match="rbf, matern12, matern32, matern52"):
        Recipe(kernel="cubic")
    with pytest.raises(InputError, match="kernels of its own"):
        Recipe("stride", kernel="matern12")
