"""Make docs/results.md and the pages in docs/results from the newest result file of every benchmark:
`python -m benchmarks.report`."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ._record import RESULTS, ROOT, SCHEMA
from ._tables import Table, markdown

DOCS = ROOT / "docs"
SUMMARY = ROOT / "benchmarks" / "summary.md"
PAPERS = {
    "dsvi": ("Doubly stochastic variational inference", ("dsvi", "bounds")),
    "coupled": ("Posteriors coupled across layers", ("star_tables", "star_pairs", "star", "star_studies")),
    "compositional": ("Compositional uncertainty", ("compositional",)),
    "stride": ("MCMC with greedy inducing points", ("stride",)),
    "framework": ("Interdomain and multi-output GPs", ("framework", "convolutional", "regression")),
    "speed": ("Speed, memory and precision", ("steps", "first", "memory", "precision", "kernels")),
    "people": ("For people: defaults and verdicts", ("people", "honesty", "functions")),
}
"""The pages: a title, and the benchmarks on it."""
INTRODUCTION = """\
# {title}

Made by `python -m benchmarks.report` from the files in `benchmarks/results`; edits here are lost.
Numbers are means over the splits, with standard errors where there are several.
"""


def newest(folder: Path = RESULTS) -> dict[Path, dict[str, Any]]:
    """The latest result file of every benchmark, or of every part of it, in the order of their names."""
    latest: dict[str, tuple[Path, dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text("utf-8"))
        if content["schema"] != SCHEMA:
            raise ValueError(f"{path.name} has schema {content['schema']}; this script reads {SCHEMA}. Run it again.")
        name = f"{content['benchmark']} {content.get('part', '')}"
        if name not in latest or content["date"] >= latest[name][1]["date"]:
            latest[name] = path, content
    return {path: content for _, (path, content) in sorted(latest.items())}


def pages(folder: Path = RESULTS) -> dict[Path, str]:
    """All pages by their paths: the summary, written by hand, and one for each paper with results."""
    there = {content["benchmark"] for content in newest(folder).values()}
    unplaced = there - {name for _, names in PAPERS.values() for name in names}
    if unplaced:
        raise ValueError(f"No page is named for {', '.join(sorted(unplaced))}. Put them in PAPERS.")
    having = {word: paper for word, paper in PAPERS.items() if there & set(paper[1])}
    links = "\n".join(f"results/{word}" for word in having)
    listing = f"## The pages\n\n```{{toctree}}\n:maxdepth: 2\n\n{links}\n```\n"
    texts = {DOCS / "results" / f"{word}.md": render(folder, *paper) for word, paper in having.items()}
    return {DOCS / "results.md": f"{SUMMARY.read_text('utf-8')}\n{listing}"} | texts


def render(folder: Path = RESULTS, title: str = "Results", names: Sequence[str] | None = None) -> str:
    """A page, from the result files in a folder: of some benchmarks, or of all."""
    files = newest(folder)
    there = dict.fromkeys(content["benchmark"] for content in files.values())
    sections = [
        section(name, {path: content for path, content in files.items() if content["benchmark"] == name})
        for name in (there if names is None else names)
        if name in there
    ]
    return "\n".join([INTRODUCTION.format(title=title), *(sections or ["There are no results yet.\n"])])


def section(name: str, files: dict[Path, dict[str, Any]]) -> str:
    """A benchmark's title and introduction, and its tables, each with the lines that say where it comes from.

    A table of datasets is one for all files, the others, of machines mostly, are one for each.
    """
    benchmark = importlib.import_module(f"benchmarks.{name}")
    parts = [f"## {benchmark.TITLE}", benchmark.INTRODUCTION]
    for table in benchmark.TABLES:
        having = [path for path in files if any(record["kind"] == table.kind for record in files[path]["records"])]
        if not having:
            continue
        parts.append(f"### {table.title}")
        for paths in [having] if "dataset" in table.names else [[path] for path in having]:
            parts += _table_of(table, {path: files[path] for path in paths})
    return "\n\n".join(parts) + "\n"


def _table_of(table: Table, files: dict[Path, dict[str, Any]]) -> list[str]:
    """The table, and the origin of each file, numbered where there are several."""
    text = markdown(table, {str(index): content["records"] for index, content in enumerate(files.values(), start=1)})
    origins = [origin(path, content) for path, content in files.items()]
    numbered = [f"{index}. {line}" for index, line in enumerate(origins, start=1)]
    return [text, "\n".join(numbered) if len(origins) > 1 else origins[0]]


def origin(path: Path, content: dict[str, Any]) -> str:
    """File, commit, machine and command of a table."""
    machine = content["machine"]
    commit = content["commit"][:7] + (" with uncommitted changes" if content["dirty"] else "")
    hardware = [machine["cpu"], f"{machine['cores']} cores", f"{machine['memory_gib']:g} GiB", machine["accelerator"]]
    hardware += [f"{name}={value}" for name, value in sorted(machine["threads"].items())]
    versions = [content["versions"], *content["peers"].values()]
    software = {name: number for group in reversed(versions) for name, number in group.items()}
    return "\n".join(
        [
            f"From `{path.name}`, commit {commit}, {content['precision']}, by `{content['command']}`",
            f"on {', '.join(filter(None, hardware))};",
            f"{', '.join(f'{name} {number}' for name, number in sorted(software.items()))}.",
        ]
    )


def main() -> None:
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
        print(f"Wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
