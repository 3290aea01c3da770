"""From the bytes of a file to its text."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from pathlib import Path
from typing import NamedTuple

from ...errors import InputError

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
NO_TABLES = (
    (rb"PK\x03\x04", "an Excel workbook or another zip archive. Save the sheet as CSV"),
    (rb"\xd0\xcf\x11\xe0", "an old Excel workbook. Save the sheet as CSV"),
    (rb"%PDF", "a PDF. Export the table as CSV"),
    (rb"\s*<(!doctype|html|\?xml)", "a web page or XML. Export the table as CSV"),
    (rb"\s*(\{|\[\s*[\[{])", "JSON. Convert it to CSV or Parquet"),
)
GZIP = b"\x1f\x8b"
FIRST_BYTES = 4096


class Text(NamedTuple):
    """What a file says, and in which encoding it says so."""

    content: str
    encoding: str
    notes: tuple[str, ...] = ()


def text_of(path: Path) -> Text:
    """The text of a file, gzipped or not."""
    content = path.read_bytes()
    if content.startswith(GZIP):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path} is gzipped, and damaged: {error}. Copy or download it again.") from error
    for beginning, what in NO_TABLES:
        if re.match(beginning, content, re.IGNORECASE):
            raise InputError(f"{path} isn't a table of separated values but {what}.")
    text = _decoded(path, content)
    if "\0" in text.content:
        line = text.content[: text.content.index("\0")].count("\n") + 1
        raise InputError(f"{path} has a zero byte in line {line}, so it isn't text. Save the table as CSV in UTF-8.")
    return text


def _decoded(path: Path, content: bytes) -> Text:
    for mark, encoding in BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return _strictly(path, content, encoding)
    zeros = [content[start:FIRST_BYTES:2].count(0) for start in (0, 1)]
    if max(zeros) > min(len(content), FIRST_BYTES) // 8:
        return _strictly(path, content, "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le")
    try:
        return Text(content.decode("utf-8"), "utf-8")
    except UnicodeDecodeError as error:
        _refuse_spoilt_utf8(path, content, error)
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(
            f"{path}, line {line}: a byte that is neither UTF-8 nor Windows-1252. Save the table in UTF-8."
        ) from error
    line = next(number for number, line in enumerate(content.split(b"\n"), 1) if not line.isascii())
    strange = next(character for character in text if ord(character) > 127)
    note = f"The file isn't in UTF-8; it is read as Windows-1252 (Western European), as of line {line}: {strange!r}."
    return Text(text, "cp1252", (note,))


def _strictly(path: Path, content: bytes, encoding: str) -> Text:
    try:
        return Text(content.decode(encoding), encoding)
    except UnicodeDecodeError as error:
        name = encoding.removesuffix("-sig").upper()
        raise InputError(
            f"{path} begins as {name} and isn't from byte {error.start} on. Save the table in UTF-8."
        ) from error


def _refuse_spoilt_utf8(path: Path, content: bytes, error: UnicodeDecodeError) -> None:
    """UTF-8 with a few wrong bytes would be read as Windows-1252 with every other sign wrong."""
    text = content.decode("utf-8", errors="replace")
    wrong = text.count("\ufffd")
    if sum(ord(character) > 127 for character in text) > 2 * wrong:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(f"{path}, line {line}: the text is UTF-8 but for a wrong byte here. Mend this line.")
