"""One file: arrays as safetensors, everything else as JSON in its metadata, written at once or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from safetensors import SafetensorError, safe_open

from ..errors import ModelFileError
from ._atomic import write_whole
from ._decoding import decode
from ._limits import MOST_ARRAYS, MOST_AXES
from ._names import Names
from ._values import DTYPES, encode

FORMAT_VERSION = 1


def write(path: str | os.PathLike[str], kind: str, value: Any, names: Names) -> None:
    """Write a value. The file is there in full or, if anything fails, as it was before."""
    try:
        structure, arrays = encode(value, names)
    except RecursionError as error:
        raise ModelFileError("What is saved is nested too deeply, which a file can't hold.") from error
    listed = {
        name: {"dtype": str(array.dtype), "shape": list(array.shape), "sha256": _digest(_bytes(array))}
        for name, array in arrays.items()
    }
    contents = json.dumps({"structure": structure, "arrays": listed}, allow_nan=False, separators=(",", ":"))
    metadata = {
        "kind": kind,
        "version": str(FORMAT_VERSION),
        "contents": contents,
        "sha256": _digest(contents.encode("utf-8")),
    }
    write_whole(Path(path), _as_safetensors(arrays, metadata))


def _as_safetensors(arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> Iterator[Any]:
    """The parts of such a file: the length of its header, the header, and the arrays without a copy of them.

    Arrays of wider numbers come first, so that all lie at multiples of their size.
    """
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, array in ordered:
        start, end = end, end + array.nbytes
        header[name] = {"dtype": DTYPES[str(array.dtype)], "shape": list(array.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    yield struct.pack("<Q", len(text))
    yield text
    for _, array in ordered:
        yield _bytes(array)


def read(path: str | os.PathLike[str], kind: str, names: Names) -> Any:
    """Read what `write` wrote, or raise `ModelFileError`.

    No size is believed that the file itself doesn't have, and no array becomes part of a value before the checksums
    of all parts agree.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelFileError(f"There is no file {path}.")
    try:
        with safe_open(path, framework="numpy") as file:
            structure, listed = _contents(path, file.metadata(), kind)
            _refuse_other_arrays(path, file, listed)
            arrays = {name: _checked(path, name, file.get_tensor(name), entry) for name, entry in listed.items()}
        return decode(structure, arrays, names)
    except (SafetensorError, OSError) as error:
        raise ModelFileError(f"{path} is damaged, or not a file of dgpax: {error}.") from error
    except RecursionError as error:
        raise ModelFileError(f"{path} is nested too deeply.") from error


def _contents(path: Path, metadata: dict[str, str] | None, kind: str) -> tuple[Any, dict[str, Any]]:
    """The structure and the list of arrays, once their checksum is right."""
    metadata = metadata or {}
    if metadata.get("kind") != kind:
        _refuse(path, f"it isn't a {kind} but {metadata.get('kind', 'something else')[:100]!r}")
    if metadata.get("version") != str(FORMAT_VERSION):
        given = metadata.get("version", "none")[:20]
        _refuse(path, f"its format version is {given}, this dgpax reads {FORMAT_VERSION}; use the one that wrote it")
    text = metadata.get("contents", "").encode("utf-8")
    if _digest(text) != metadata.get("sha256"):
        _refuse(path, "the checksum of its structure is wrong: it was changed or damaged")
    try:
        contents = json.loads(text, parse_constant=lambda name: _refuse(path, f"it holds {name}"))
    except ValueError as error:
        raise ModelFileError(f"{path} can't be read: its structure isn't JSON ({error}).") from error
    match contents:
        case {"structure": structure, "arrays": dict(listed), **rest} if not rest:
            return structure, listed
    _refuse(path, "its structure isn't one of dgpax")


def _refuse_other_arrays(path: Path, file: Any, listed: dict[str, Any]) -> None:
    """Names, types and shapes in the header must be those of the list; nothing is allocated yet."""
    if set(file.keys()) != set(listed):
        _refuse(path, "its arrays aren't those of its structure")
    if len(listed) > MOST_ARRAYS:
        _refuse(path, f"it has {len(listed):,} arrays; up to {MOST_ARRAYS:,} are believed")
    for name, entry in listed.items():
        header = file.get_slice(name)
        match entry:
            case {"dtype": str(dtype), "shape": list(shape), "sha256": str(), **rest} if not rest:
                if DTYPES.get(dtype) == header.get_dtype() and header.get_shape() == shape and len(shape) <= MOST_AXES:
                    continue
        _refuse(path, f"the array {name[:100]} has another type or shape than its structure says")


def _checked(path: Path, name: str, array: np.ndarray, entry: dict[str, Any]) -> np.ndarray:
    if _digest(_bytes(array)) != entry["sha256"]:
        _refuse(path, f"the checksum of the array {name[:100]} is wrong: it was changed or damaged")
    if array.dtype == bool and np.any(_bytes(array) > 1):
        _refuse(path, f"the array {name[:100]} holds truth values that are neither true nor false")
    return array


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


def _digest(data: Any) -> str:
    return hashlib.sha256(data).hexdigest()


def _refuse(path: Path, why: str) -> NoReturn:
    raise ModelFileError(f"{path} can't be read: {why}.")
