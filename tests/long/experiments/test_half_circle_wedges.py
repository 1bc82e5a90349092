"""The half circle with wedges in its short form: its geometry, lines and pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments.budgets import BUDGETS
from experiments.half_circle import NOISE
from experiments.half_circle_wedges import (
    ANGLES,
    HALF_WIDTH,
    HEIGHT,
    MODELS,
    draw_with_wedges,
    picture_of,
    run,
)

LOOK = replace(BUDGETS["look"], circle_steps=20, drawn_rows=300)


def test_a_wedge_is_a_triangle_that_stands_on_the_half_circle() -> None:
    points = draw_with_wedges(20.0, np.random.default_rng(0))
    wedge = points[20 * 280 : 20 * 380]
    out = np.array([np.cos(ANGLES[0]), np.sin(ANGLES[0])])
    height = wedge @ out - 1.0
    across = np.abs(wedge @ np.array([-out[1], out[0]]))
    assert len(points) == 20 * (280 + 3 * 100)
    assert height.min() > -5 * NOISE
    assert (across < HALF_WIDTH * (1.0 - height.clip(0.0) / HEIGHT) + 5 * NOISE).all()
    assert abs(height.mean() - HEIGHT / 3.0) < 4 * height.std() / np.sqrt(len(wedge))


def test_a_run_has_a_line_and_a_picture_for_each_model(tmp_path: Path) -> None:
    lines = list(run(LOOK, tmp_path))
    assert [line["model"] for line in lines] == [*MODELS, "the truth itself"]
    assert np.isfinite([line["test"] for line in lines]).all()
    assert [line["norm_of_a"] > 0.0 for line in lines[:-1]] == [False, True, True, True]
    pictures = {tmp_path / picture_of(name) for name in MODELS}
    assert len(pictures) == len(MODELS)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
