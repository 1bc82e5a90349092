"""The appendix's clouds have the correlation of their formula, and their picture is small."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from experiments.copula_pictures import CASES, draw_scores, run


def test_drawn_scores_have_the_correlation_of_the_formula() -> None:
    for a, omega in {setting for settings in CASES.values() for setting in settings}:
        scores, correlation = draw_scores(a, omega, 20_000)
        expected = a[0] * a[1] / math.sqrt((omega + a[0] ** 2) * (omega + a[1] ** 2))
        assert correlation == pytest.approx(expected, abs=1e-6)
        drawn = (scores[:, 0] * scores[:, 1]).mean()
        assert drawn == pytest.approx(expected, abs=5 * math.sqrt((1 + expected**2) / 20_000))


def test_a_run_has_a_line_for_each_cloud_and_leaves_a_small_picture(tmp_path: Path) -> None:
    lines = list(run(tmp_path))
    assert len(lines) == sum(map(len, CASES.values()))
    picture = (tmp_path / "copula.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 150_000
