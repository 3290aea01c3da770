"""Files of models with another structure and right checksums, as an attacker would write them."""

from __future__ import annotations

import copy
import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file


def metadata_of(path: Path) -> dict[str, str]:
    """The text in a file's header."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8 : 8 + length])["__metadata__"]


def forge(path: Path, change: Callable[[Any], Any], arrays: dict[str, np.ndarray] | None = None, **metadata: str):
    """Change the structure and make the checksums right again."""
    given = metadata_of(path)
    contents = json.loads(given["contents"])
    contents = change(contents) or contents
    text = contents if isinstance(contents, str) else json.dumps(contents)
    arrays = load_file(path) if arrays is None else arrays
    checksum = hashlib.sha256(text.encode()).hexdigest()
    save_file(arrays, path, metadata={**given, "contents": text, "sha256": checksum, **metadata})


def listed(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """What the structure says of arrays."""
    return {
        name: {
            "dtype": str(array.dtype),
            "shape": list(array.shape),
            "sha256": hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest(),
        }
        for name, array in arrays.items()
    }


def places(node: Any, path: tuple = ()) -> list[tuple]:
    """Where everything in a structure stands."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path, *(place for key, child in children for place in places(child, (*path, key)))]


def at(node: Any, path: tuple) -> Any:
    for key in path:
        node = node[key]
    return node


def put(node: Any, path: tuple, value: Any) -> None:
    at(node, path[:-1])[path[-1]] = value


NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    7,
    0.5,
    -0.5,
    1e300,
    -1e300,
    1e-300,
    2**31,
    2**63,
    2**200,
    10**6,
    True,
    False,
    None,
    "",
    "x",
    [],
    [1],
    [[]],
]


def another_number(rng, contents, classes):
    """A number, a word or a truth value becomes another."""
    structure = contents["structure"]
    plain = [
        p
        for p in places(structure)
        if p and p[-1] not in ("kind", "class", "of", "name") and not isinstance(at(structure, p), dict | list)
    ]
    put(structure, plain[rng.integers(len(plain))], NUMBERS[rng.integers(len(NUMBERS))])


def another_class(rng, contents, classes):
    structure = contents["structure"]
    records = [
        p for p in places(structure) if isinstance(at(structure, p), dict) and at(structure, p).get("kind") == "record"
    ]
    at(structure, records[rng.integers(len(records))])["class"] = classes[rng.integers(len(classes))]


def swapped(rng, contents, classes):
    """Two parts change places, or one takes the place of the other too."""
    structure = contents["structure"]
    parts = [p for p in places(structure) if p and isinstance(at(structure, p), dict)]
    one, other = (parts[index] for index in rng.integers(len(parts), size=2))
    a, b = copy.deepcopy(at(structure, one)), copy.deepcopy(at(structure, other))
    try:
        put(structure, one, b)
        if rng.random() < 0.5:
            put(structure, other, a)
    except (KeyError, IndexError, TypeError):
        pass


def shorter_or_longer(rng, contents, classes):
    """An item of a tuple goes or comes twice."""
    structure = contents["structure"]
    tuples = [p for p in places(structure) if isinstance(at(structure, p), list) and at(structure, p)]
    if tuples:
        items = at(structure, tuples[rng.integers(len(tuples))])
        index = int(rng.integers(len(items)))
        if rng.random() < 0.5:
            del items[index]
        else:
            items.insert(index, copy.deepcopy(items[index]))


def another_array(rng, contents, classes):
    """An array is another one of the file, or of another home."""
    structure = contents["structure"]
    arrays = [
        p for p in places(structure) if isinstance(at(structure, p), dict) and at(structure, p).get("kind") == "array"
    ]
    node = at(structure, arrays[rng.integers(len(arrays))])
    if rng.random() < 0.8:
        node["name"] = sorted(contents["arrays"])[rng.integers(len(contents["arrays"]))]
    else:
        node["of"] = ["jax", "weak", "numpy", "scalar"][rng.integers(4)]


def nothing_there(rng, contents, classes):
    structure = contents["structure"]
    parts = [p for p in places(structure) if p and p[-1] not in ("kind", "class", "of", "name")]
    put(structure, parts[rng.integers(len(parts))], None)


STRUCTURE = [another_number, another_class, swapped, shorter_or_longer, another_array, nothing_there]


def reshaped(rng, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """One array of other numbers or of another shape."""
    arrays = dict(arrays)
    name = sorted(arrays)[rng.integers(len(arrays))]
    array, way = np.array(arrays[name]), rng.integers(6)
    if way == 0:
        array = array.reshape(-1)
    elif way == 1:
        array = array[None]
    elif way == 2 and array.ndim:
        array = np.concatenate([array, array])
    elif way == 3 and array.ndim:
        array = array[..., :-1]
    elif way == 4:
        array = np.full_like(array, [np.nan, np.inf, -1, 0][rng.integers(4)] if array.dtype.kind == "f" else 0)
    else:
        array = array.astype([np.int64, np.float32, bool, np.float64][rng.integers(4)])
    arrays[name] = np.ascontiguousarray(array)
    return arrays


def mutate(rng, path: Path, classes: list[str]) -> str:
    """Change the file at random; what was done comes back."""
    if rng.random() < 0.25:
        arrays = reshaped(rng, load_file(path))
        forge(path, lambda contents: contents.update(arrays=listed(arrays)), arrays)
        return "reshaped"
    change = STRUCTURE[rng.integers(len(STRUCTURE))]
    forge(path, lambda contents: change(rng, contents, classes))
    return change.__name__
