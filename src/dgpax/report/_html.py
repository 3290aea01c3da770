"""HTML as a tree in which text is always text: the one place that writes a `<`."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ._text import LONGEST, shown

EMPTY = frozenset({"br", "meta"})
"""Elements of HTML that have no end; those of SVG all have one."""


@dataclass(frozen=True)
class Tag:
    """An element. Children that are text are escaped when it is written, and so are the values of attributes."""

    name: str
    attributes: tuple[tuple[str, str], ...]
    children: tuple[Node, ...]

    def __str__(self) -> str:
        return "".join(self._pieces())

    def _pieces(self) -> Iterator[str]:
        attributes = "".join(f' {name}="{html.escape(value)}"' for name, value in self.attributes)
        yield f"<{self.name}{attributes}>"
        for child in self.children:
            yield html.escape(child, quote=False) if isinstance(child, str) else str(child)
        if self.name not in EMPTY:
            yield f"</{self.name}>"


Node: TypeAlias = "Tag | str"


def tag(name: str, /, *children: Node | Iterable[Node] | None, **attributes: str | float | None) -> Tag:
    """An element: `tag("td", text, class_="number")`.

    A trailing underscore of an attribute's name is dropped and others become hyphens. Children may be lists of
    elements; None, as a child or as an attribute, is left out.
    """
    given = tuple((_attribute(key), _value(value)) for key, value in attributes.items() if value is not None)
    return Tag(name, given, tuple(_flat(children)))


def table(head: Iterable[str], rows: Iterable[Iterable[Node]], *, wide: Iterable[int] = (), numbers: int = 1) -> Tag:
    """A table whose first columns are text and whose columns from `numbers` on are numbers.

    Those in `wide` are left out on narrow screens.
    """
    hidden = set(wide)

    def cell(kind: str, index: int, content: Node) -> Tag:
        classes = ["number"] * (index >= numbers) + ["wide"] * (index in hidden)
        return tag(kind, content, class_=" ".join(classes) or None)

    top = tag("tr", [cell("th", i, name) for i, name in enumerate(head)])
    body = [tag("tr", [cell("td", i, entry) for i, entry in enumerate(row)]) for row in rows]
    return tag("table", tag("thead", top), tag("tbody", body))


def section(identifier: str, title: str, *children: Node | Iterable[Node] | None) -> Tag:
    """A part of the page that can be linked to by the title of its `aria_label`."""
    return tag("section", tag("h2", title), *children, id=identifier, aria_label=title)


def name(text: object, longest: int = LONGEST) -> Tag:
    """A name of somebody else's: a column, a category, a file. It may break anywhere."""
    return tag("span", shown(text, longest), class_="name")


def _attribute(key: str) -> str:
    return key.removesuffix("_").replace("_", "-")


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def _flat(children: Iterable[Node | Iterable[Node] | None]) -> Iterator[Node]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, str | Tag):
            yield child
        else:
            yield from child
