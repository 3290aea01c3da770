"""The small files of tests/tables, with what must be understood, noted or refused.

A file begins with `== its name`; its lines begin with `|`, and ⇥ stands for a tab. Then come its columns (kind and
first values), a pattern for every note, `encoding`, and what `read_table` is told beside the path (`said`); or the
pattern of the error.
"""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "tables"


@dataclass
class SmallFile:
    """A file, and what is to be made of it."""

    content: bytes = b""
    columns: dict[str, tuple[str, list[Any]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    said: dict[str, Any] = field(default_factory=dict)
    refused: str = ""


def small_files(path: Path) -> dict[str, SmallFile]:
    """All of a list, by name."""
    blocks = re.split(r"^== (.+)\n", path.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return {name: _parsed(block) for name, block in zip(blocks[::2], blocks[1::2], strict=True)}


def _parsed(block: str) -> SmallFile:
    file, encoding, lines = SmallFile(), "utf-8", []
    for line in block.splitlines():
        key, _, rest = line.rpartition(": ") if re.match(r".*: \w+ \[", line) else line.partition(": ")
        if line.startswith("|"):
            lines.append(line.removeprefix("|").removeprefix(" ").replace("⇥", "\t") + "\n")
        elif key == "encoding":
            encoding = rest
        elif key == "said":
            file.said = json.loads(rest)
        elif key == "note":
            file.notes.append(rest)
        elif key == "refused":
            file.refused = rest
        elif rest:
            kind, _, values = rest.partition(" ")
            file.columns[key] = kind, json.loads(values)
    file.content = "".join(lines).encode(encoding)
    return file


AB = {"a": ("number", [1, 3]), "b": ("number", [2, 4])}
UNDERSTOOD = small_files(FOLDER / "understood.txt") | {
    "UTF-16, big-endian": SmallFile("\ufeffa;b\r\n1;2\r\n3;4\r\n".encode("utf-16-be"), AB),
    "Windows' line ends after sep=": SmallFile(b"sep=;\r\na;b\r\n1;2\r\n3;4\r\n", AB),
    "gzipped, by another name": SmallFile(gzip.compress(b"a,b\n1,2\n3,4\n"), AB),
    "carriage returns only": SmallFile(b"a,b\r1,2\r3,4\r", AB),
    "no line end at the end": SmallFile(b"a,b\n1,2\n3,4", AB),
}
REFUSED = small_files(FOLDER / "refused.txt") | {
    "a workbook": SmallFile(b"PK\x03\x04....", refused="an Excel workbook.*Save the sheet as CSV"),
    "a web page": SmallFile(b"<!DOCTYPE html><html></html>", refused="a web page"),
    "JSON": SmallFile(b'[{"a": 1}]', refused="JSON. Convert"),
    "nothing": SmallFile(b"", refused="it is empty"),
    "a zero byte": SmallFile(b"a,b\n1,2\n3,4\n5,6\n7,8\n9,1\n1,\x00\n", refused="zero byte in line 7"),
    "broken gzip": SmallFile(b"\x1f\x8b....", refused="gzipped, and damaged"),
    "UTF-8 but for a byte": SmallFile(
        "naïve,café\nthé,2\n1,é".encode() + b"\xff\n", refused="line 3: .*but for a wrong byte"
    ),
}
