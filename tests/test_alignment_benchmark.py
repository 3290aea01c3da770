"""The alignment part of the benchmark of compositional uncertainty, in a small size."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import compositional, report


@pytest.mark.slow
def test_a_quick_run_of_the_alignment(tmp_path):
    words = ["--quick", "--parts", "alignment", "--results", str(tmp_path), "--pictures", str(tmp_path)]
    path = compositional.main(words)
    assert path.name.startswith("compositional-alignment-")
    records = json.loads(path.read_text("utf-8"))["records"]
    assert {record["posterior"] for record in records} == {"mean-field", "fully-coupled", "points-as-locations"}
    assert all(np.isfinite(record["bound"]) and record["warp_deviation"] > 0 for record in records)
    assert (tmp_path / "alignment.png").exists()
    assert "Figure D1" in report.render(tmp_path)
