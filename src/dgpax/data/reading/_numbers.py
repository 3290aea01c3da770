"""Numbers as people write them: with either decimal mark, marks of thousands, currencies, per cent and units."""

from __future__ import annotations

import re

from ._cell import Cell

CURRENCY = (
    r"(?:(?:US|AU|CA|HK|NZ|R|A|C|S)?\$|[€£¥₹₽₩₺₪฿¢]|EUR|USD|GBP|CHF|JPY|CNY|SEK|NOK|DKK|PLN|CZK|HUF|AUD|CAD|NZD|INR|"
    r"BRL|ZAR|RUB|MXN|Rs\.?|kr\.?|Fr\.?|zł|Kč|Ft)"
)
PERCENT = frozenset("%‰")
MAGNITUDES = frozenset(["k", "K", "M", "B", "bn", "Mio", "Mio.", "Mrd", "Mrd.", "million", "billion", "thousand"])
_UNITS = """kg g mg µg t lb lbs oz m cm mm µm km ft in yd mi m² m2 m³ m3 sqm sqft ft² ft2 km² ha l ml L mL °C °F ° K h
min s sec ms d days years W kW MW kWh MWh V mV A mA Hz kHz MHz GHz km/h m/s mph Pa hPa kPa bar mbar psi ppm ppb mg/l
mg/L g/l mol N J kJ kcal cal dB px MB GB TB"""
UNITS = MAGNITUDES | PERCENT | frozenset(_UNITS.split())
"""What may stand after a number and makes it no label."""
FEWEST_OF_A_UNIT = 3
"""Different numbers from which on an unknown word after all of them is a unit: "4WD" and "2WD" are labels."""

_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-", "’": "'", "`": "'"})
_INDIAN = r"[1-9]\d?(?:,\d\d)+,\d{3}"
_EXPONENT = r"(?:[eE][-+]?\d+)?"


def _decimals(mark: str, thousands: str, further: str = "") -> re.Pattern[str]:
    """Numbers with this decimal mark, whose thousands may be separated by one of those."""
    grouped = "|".join(rf"[1-9]\d{{0,2}}(?:{re.escape(sign)}\d{{3}})+" for sign in thousands)
    mark = re.escape(mark)
    plain = rf"(?:\d+(?:{mark}\d*)?|{mark}\d+){_EXPONENT}"
    return re.compile(rf"{plain}|(?:{grouped}{further})(?:{mark}\d*)?", re.ASCII)


_WITH_DOT = _decimals(".", ", '", f"|{_INDIAN}")
_WITH_COMMA = _decimals(",", ". '")
_ANY = re.compile(
    rf"(?P<sign>[-+]?)\s*(?P<before>{CURRENCY}?)\s*(?P<sign2>[-+]?)\s*"
    rf"(?P<core>[\d.,][\d.,' ]*{_EXPONENT})(?P<minus>-?)\s*(?P<after>(?:{CURRENCY}|[^\W\d_]|[%‰°µ])[^,;\"()]{{0,11}}|)",
    re.ASCII,
)
_NO_CENTS = re.compile(r"(?<=\d)[.,][-–—]+(?=$|\D)")
_IN_PARENTHESES = re.compile(r"\((.*)\)")


def number(cell: str) -> Cell | None:
    """A cell as a number with a decimal dot and with a decimal comma, and the unit beside it; None if it is none."""
    return _plain(cell) or _with_marks(cell.translate(_SPACES))


def is_currency(unit: str) -> bool:
    """Whether a unit is one of money."""
    return bool(re.fullmatch(CURRENCY, unit))


def is_unit(word: str) -> bool:
    """Whether what stands beside a number is a known unit or a currency."""
    return word in UNITS or is_currency(word)


def _plain(cell: str) -> Cell | None:
    """The fast way for what programs write."""
    whole, _, fraction = cell.lstrip("-+").partition(".")
    if not (whole.isdigit() and cell.isascii() and len(cell) - len(whole) - len(fraction) <= 2):
        return None
    if not fraction:
        return None if cell.endswith(".") or len(cell) > len(whole) + 1 else Cell(float(cell), float(cell))
    unmistakable = fraction.isdigit() and (len(fraction) != 3 or len(whole) > 3 or whole[0] == "0")
    return Cell(float(cell), None) if unmistakable else None


def _with_marks(text: str) -> Cell | None:
    text = _NO_CENTS.sub("", text)
    in_parentheses = _IN_PARENTHESES.fullmatch(text)
    found = _ANY.fullmatch(in_parentheses[1].strip() if in_parentheses else text)
    if found is None or (found["before"] and found["after"]):
        return None
    signs = [sign for sign in (found["sign"], found["sign2"], found["minus"], "-" * bool(in_parentheses)) if sign]
    if len(signs) > 1:
        return None
    core = found["core"].strip()
    sign = -1.0 if signs == ["-"] else 1.0
    dot = sign * float(re.sub("[, ']", "", core)) if _WITH_DOT.fullmatch(core) else None
    comma = sign * float(re.sub("[. ']", "", core).replace(",", ".")) if _WITH_COMMA.fullmatch(core) else None
    return None if dot is comma is None else Cell(dot, comma, (found["before"] or found["after"]).strip())
