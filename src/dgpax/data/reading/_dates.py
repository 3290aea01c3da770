"""Dates and times of day as people write them."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

from ._cell import Cell

MONTH, QUARTER, TWO_DIGITS, COMPACT, ZONE = "month", "quarter", "two digits", "compact", "zone"
"""What is peculiar about a date, as its remark."""

_MONTHS = {"jan": 1, "jän": 1, "feb": 2, "mar": 3, "mär": 3, "mrz": 3, "apr": 4, "may": 5, "mai": 5, "jun": 6, "jul": 7,
           "aug": 8, "sep": 9, "oct": 10, "okt": 10, "nov": 11, "dec": 12, "dez": 12}  # fmt: skip
_NAME = r"(?P<name>[^\W\d_]{3,9})\.?"
_YEAR = r"(?P<y>[12]\d{3})"
_SHORT_YEAR = r"(?P<y>[12]\d{3}|\d\d)"
_SECONDS = r"(?::(?P<second>\d\d(?:[.,]\d{1,9})?))?"
_HALF = r"(?: ?(?P<half>[AaPp]\.?[Mm]\.?))?"
_ZONE = r"(?: ?(?P<zone>Z|UTC|GMT|[-+]\d\d(?::?\d\d)?))?"
_TIME = rf"(?:(?:T|,? +)(?P<hour>\d{{1,2}}):(?P<minute>\d\d){_SECONDS}{_HALF}{_ZONE})?"
_YEAR_FIRST = re.compile(rf"{_YEAR}(?P<mark>[-/.])(?P<a>\d{{1,2}})(?P=mark)(?P<b>\d{{1,2}}){_TIME}", re.ASCII)
_YEAR_LAST = re.compile(rf"(?P<a>\d{{1,2}})(?P<mark>[-/.])(?P<b>\d{{1,2}})(?P=mark){_SHORT_YEAR}{_TIME}", re.ASCII)
_DAY_NAME = re.compile(rf"(?P<d>\d{{1,2}})(?:\.|st|nd|rd|th)?[ -]*{_NAME},?[ -]*{_SHORT_YEAR}{_TIME}")
_NAME_DAY = re.compile(rf"{_NAME} (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? {_YEAR}{_TIME}")
_YEAR_MONTH = re.compile(rf"{_YEAR}(?:[-/]|M)(?P<m>\d\d?)", re.ASCII)
_MONTH_YEAR = re.compile(rf"(?P<m>\d\d?)/{_YEAR}", re.ASCII)
_NAME_YEAR = re.compile(rf"{_NAME}[ -/]*{_SHORT_YEAR}")
_YEAR_NAME = re.compile(rf"{_YEAR}[ -]{_NAME}")
_QUARTERS = (re.compile(rf"{_YEAR}[- ]?Q(?P<q>[1-4])"), re.compile(rf"Q(?P<q>[1-4])[-/ ]?{_YEAR}"))
_COMPACT = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])", re.ASCII)
_WEEKDAY = re.compile(
    r"(?:mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so|lun|mar|mer|jeu|ven|sam|dim)[^\W\d_]{0,8}\.?,?\s+(?=\S{2})",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"(\d{1,4}):([0-5]\d)(?::([0-5]\d(?:[.,]\d{1,9})?))? ?([AaPp]\.?[Mm]\.?)?", re.ASCII)
_HOUR = re.compile(r"(\d{1,2}) ?([AaPp]\.?[Mm]\.?)", re.ASCII)


def date(cell: str) -> Cell | None:
    """A cell as a date with the day first and with the month first; None if it is none."""
    if not any(character.isdigit() for character in cell):
        return None
    found = _date(cell)
    if found is None and (weekday := _WEEKDAY.match(cell)):
        found = _date(cell[weekday.end() :])
    return found


def _date(cell: str) -> Cell | None:
    for reading in (_of_numbers, _of_names, _of_months, _of_iso):
        found = reading(cell)
        if found is not None:
            return found
    return None


def compact_date(cell: str) -> Cell | None:
    """Eight digits as a date: 20210103."""
    if not _COMPACT.fullmatch(cell):
        return None
    return _only(lambda: datetime.strptime(cell, "%Y%m%d"), COMPACT)


def clock(cell: str) -> Cell | None:
    """A time of day in hours; None if it is none."""
    found = _CLOCK.fullmatch(cell)
    hours, minutes, seconds, half = found.groups() if found else (None, "0", None, None)
    if found is None and (short := _HOUR.fullmatch(cell)):
        hours, half = short.groups()
    if hours is None:
        return None
    whole = int(hours)
    if half:
        if not 1 <= whole <= 12:
            return None
        whole = whole % 12 + 12 * half.lower().startswith("p")
    value = whole + int(minutes) / 60 + float((seconds or "0").replace(",", ".")) / 3600
    return Cell(value, value)


def _of_numbers(cell: str) -> Cell | None:
    if found := _YEAR_FIRST.fullmatch(cell):
        return _by_places(found, "b", "a")
    found = _YEAR_LAST.fullmatch(cell)
    if found is None:
        return None
    day_first, month_first = _by_places(found, "a", "b"), _by_places(found, "b", "a")
    if day_first is None or month_first is None:
        return day_first._replace(second=None) if day_first else month_first and month_first._replace(first=None)
    return day_first._replace(second=month_first.second)


def _by_places(found: re.Match[str], day: str, month: str) -> Cell | None:
    return _only(lambda: _moment(found, int(found[month]), int(found[day])), _peculiar(found))


def _of_names(cell: str) -> Cell | None:
    for pattern in (_DAY_NAME, _NAME_DAY):
        if (found := pattern.fullmatch(cell)) and found["name"][:3].lower() in _MONTHS:
            month = _MONTHS[found["name"][:3].lower()]
            return _only(lambda f=found, m=month: _moment(f, m, int(f["d"])), _peculiar(found))
    return None


def _of_months(cell: str) -> Cell | None:
    for pattern in (_YEAR_MONTH, _MONTH_YEAR):
        if found := pattern.fullmatch(cell):
            return _only(lambda f=found: datetime(_year(f), int(f["m"]), 1), MONTH)
    for pattern in (_NAME_YEAR, _YEAR_NAME):
        if (found := pattern.fullmatch(cell)) and found["name"][:3].lower() in _MONTHS:
            return _only(lambda f=found: datetime(_year(f), _MONTHS[f["name"][:3].lower()], 1), MONTH)
    for pattern in _QUARTERS:
        if found := pattern.fullmatch(cell):
            return _only(lambda f=found: datetime(_year(f), 3 * int(f["q"]) - 2, 1), QUARTER)
    return None


def _of_iso(cell: str) -> Cell | None:
    """What else ISO 8601 has: weeks (2020-W05-1), 20200128T143000."""
    if not re.match(r"\d{4}-?W\d\d|\d{8}T\d", cell):
        return None
    return _only(lambda: _in_utc(datetime.fromisoformat(cell)))


def _only(make: Callable[[], datetime], remark: str = "") -> Cell | None:
    """A date that both conventions read alike; None if there is no such day."""
    with suppress(ValueError, OverflowError):
        value = make()
        return Cell(value, value, remark)
    return None


def _moment(found: re.Match[str], month: int, day: int) -> datetime:
    hour, second = int(found["hour"] or 0), float((found["second"] or "0").replace(",", "."))
    if found["half"]:
        if not 1 <= hour <= 12:
            raise ValueError("no hour of half a day")
        hour = hour % 12 + 12 * found["half"].lower().startswith("p")
    if second >= 60.0:
        raise ValueError("no second of a minute")
    moment = datetime(_year(found), month, day, hour, int(found["minute"] or 0)) + timedelta(seconds=second)
    return _in_utc(moment.replace(tzinfo=_zone(found["zone"])))


def _zone(text: str | None) -> timezone | None:
    if text is None or text in ("Z", "UTC", "GMT"):
        return UTC if text else None
    hours, minutes = int(text[1:3]), int(text[-2:]) if len(text) > 3 else 0
    return timezone((-1 if text[0] == "-" else 1) * timedelta(hours=hours, minutes=minutes))


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _year(found: re.Match[str]) -> int:
    """Two digits are of 1970 to 2069."""
    year = int(found["y"])
    return year + (2000 if year < 70 else 1900) if year < 100 else year


def _peculiar(found: re.Match[str]) -> str:
    return TWO_DIGITS if len(found["y"]) == 2 else ZONE if found["zone"] else ""
