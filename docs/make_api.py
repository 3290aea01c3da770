"""The pages of the interface, one per package, from signatures and docstrings: `python docs/make_api.py`."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dgpax
import dgpax.errors
import dgpax.propagate

FURTHER = (dgpax.errors, dgpax.propagate)
LONGEST_LINE = 100


def write(folder: Path) -> list[Path]:
    """A page for dgpax itself, one for each public package, and the list of them."""
    folder.mkdir(exist_ok=True)
    pages = {"dgpax": page("dgpax", top_level())}
    for package in packages():
        pages[package.__name__.rpartition(".")[2]] = page(package.__name__, members(package), package.__doc__)
    listing = "\n".join(pages)
    pages["index"] = f"# Interface\n\n```{{toctree}}\n:maxdepth: 1\n\n{listing}\n```\n"
    paths = [folder / f"{name}.md" for name in pages]
    for path, text in zip(paths, pages.values(), strict=True):
        path.write_text(text, "utf-8")
    return paths


def packages() -> list[types.ModuleType]:
    """The public packages, in the order of their names."""
    public = [value for name in dir(dgpax) if isinstance(value := getattr(dgpax, name), types.ModuleType)]
    kept = {m.__name__: m for m in (*public, *FURTHER)}
    return [kept[name] for name in sorted(kept)]


def top_level() -> list[tuple[str, Any]]:
    """What `dgpax.` itself offers."""
    return members(dgpax)


def members(module: types.ModuleType) -> list[tuple[str, Any]]:
    """Public classes and functions of ours, by name."""
    found = [
        (name, value)
        for name in dir(module)
        if not name.startswith("_")
        and getattr(value := getattr(module, name), "__module__", "").startswith("dgpax")
        and callable(value)
    ]
    return sorted(found, key=lambda pair: pair[0].lower())


def page(title: str, names: list[tuple[str, Any]], introduction: str | None = None) -> str:
    """A heading per name, its signature and docstring, and the methods of classes."""
    parts = [f"# {title}", markdown(introduction)]
    for name, value in names:
        parts += [f"## {name}", signature(name, value), markdown(inspect.getdoc(value))]
        parts += [text for method in methods(value) for text in method] if inspect.isclass(value) else []
    return "\n\n".join(part for part in parts if part) + "\n"


def methods(kind: type) -> Iterator[tuple[str, ...]]:
    """The public methods that a class defines itself and explains."""
    for name, value in vars(kind).items():
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if isinstance(function, property) and not name.startswith("_") and function.__doc__:
            yield (f"**.{name}** {one_line(function.__doc__)}",)
        elif inspect.isfunction(function) and not name.startswith("_") and function.__doc__:
            yield signature(f".{name}", function), markdown(inspect.getdoc(function))


def signature(name: str, value: Any) -> str:
    try:
        given = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    taken = [parameter for parameter in given.parameters.values() if parameter.name != "self"]
    parameters = [written(parameter) for parameter in taken]
    kinds = [parameter.kind for parameter in taken]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    text = f"{name}({', '.join(parameters)})"
    if len(text) > LONGEST_LINE:
        text = f"{name}(\n    " + ",\n    ".join(parameters) + ",\n)"
    return f"```python\n{text}\n```"


def written(parameter: inspect.Parameter) -> str:
    """As in the source: annotations without quotes around them or modules in front of arrays."""
    annotation = parameter.annotation
    if isinstance(annotation, str):
        parameter = parameter.replace(annotation=inspect.Parameter.empty)
        name, equals, default = str(parameter).partition("=")
        return f"{name}: {annotation}" + (f" = {default}" if equals else "")
    return str(parameter).replace("jaxtyping.", "").replace("jaxlib._jax.", "")


def markdown(docstring: str | None) -> str:
    """Docstrings are Markdown already, but for examples and for what only looks like it outside of code."""
    if docstring is None:
        return ""
    return "\n\n".join(
        f"```pycon\n{paragraph}\n```" if paragraph.startswith(">>>") else prose(paragraph)
        for paragraph in inspect.cleandoc(docstring).split("\n\n")
    )


def prose(text: str) -> str:
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else part.replace("<", "\\<").replace("*", "\\*") for part in parts)


def one_line(docstring: str) -> str:
    return " ".join(markdown(docstring).split())


if __name__ == "__main__":
    write(Path(__file__).parent / "api")
