"""What people need to adopt a project: versions that agree, and workflows that can be read."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import dgpax

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = [path for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")) if path.stem != "config"]


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    changes = re.findall(r"^## (\S+) – (\S+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)
    assert project["version"] == dgpax.__version__ == citation["version"] == changes[0][0]
    assert citation["date-released"] == changes[0][1] and citation["license"] == project["license"]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for _, date in changes)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_say_what_runs_where_and_for_how_long(path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"} and workflow[True]  # YAML takes `on` for a truth value
    jobs = workflow["jobs"]
    for job in jobs.values():
        assert job["runs-on"] and 0 < job["timeout-minutes"] <= 120
        assert set(job.get("needs", "").split()) <= set(jobs)
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])
        assert all("@" in step["uses"] for step in job["steps"] if "uses" in step)


def test_only_the_release_may_ask_for_an_identity():
    asking = [path.name for path in WORKFLOWS if "id-token" in path.read_text()]
    assert asking == ["release.yml"]
    release = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
    assert "permissions" not in release["build"] and release["publish"]["environment"] == "release"


def test_the_oldest_and_the_newest_python_are_tried():
    matrix = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]["tests"]["strategy"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {line.rpartition(" ")[2] for line in project["classifiers"] if re.search(r":: 3\.\d+$", line)}
    assert set(matrix["matrix"]["python"]) == named


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_of_issues(path):
    template = yaml.safe_load(path.read_text())
    assert template["name"] and template["description"]
    assert all(part["attributes"]["label"] for part in template["body"])
