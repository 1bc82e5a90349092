"""The half circle's experiment in its short form: lines, contours and pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from experiments.budgets import BUDGETS
from experiments.half_circle import LEARNING, MODELS, NOISE, draw_points, gaussians, run
from gcvae import Synthesizer
from gcvae.numerics.generators import generator_for

LOOK = replace(BUDGETS["look"], restarts=1, circle_steps=20, drawn_rows=300)


def test_the_points_lie_on_the_half_circle() -> None:
    points = draw_points(2_000, np.random.default_rng(0))
    radius = np.hypot(*points.T)
    assert abs(radius.mean() - 1.0) < 3 * NOISE / np.sqrt(2_000) + NOISE**2
    assert points[:, 1].min() > -5 * NOISE


def test_a_run_has_a_line_for_each_model_and_leaves_its_pictures(tmp_path: Path) -> None:
    lines = list(run(LOOK, tmp_path))
    others, lines = lines[: len(LEARNING) - 1], lines[len(LEARNING) - 1 :]
    assert [line["learning"] for line in others] == [*LEARNING][:-1]
    assert [line["model"] for line in lines] == [*MODELS, "the truth itself"]
    assert np.isfinite([line["test"] for line in lines]).all()
    assert lines[-1]["test"] > max(line["test"] for line in lines[:-1])
    for preset in MODELS.values():
        assert (tmp_path / f"half-circle-{preset}.png").read_bytes().startswith(b"\x89PNG")


def test_a_contour_is_the_covariance_of_what_the_decoder_draws_at_its_z() -> None:
    points = draw_points(300, np.random.default_rng(0)) @ np.array([[2.0, 0.3], [0.0, 1.0]])
    frame = pd.DataFrame(points, columns=["x", "y"])
    settings = {"max_steps": 60, "d_latent": 2}
    for preset in MODELS.values():
        fitted = Synthesizer.fit(frame, preset=preset, settings=settings, device="cpu")
        [mean], [covariance] = gaussians(fitted, 1)  # at z = 0
        at_zero = fitted.model.conditional(torch.zeros(40_000, 2))
        with torch.no_grad():
            _, drawn = at_zero.sample(generator_for(0, "contour"))
        scale = np.array([codec.scale for codec in fitted.codec.columns])
        offset = np.array([codec.offset for codec in fitted.codec.columns])
        rows = drawn.numpy() * scale + offset
        error = 4 * np.abs(covariance).max() / np.sqrt(40_000)
        np.testing.assert_allclose(rows.mean(0), mean, atol=error)
        np.testing.assert_allclose(np.cov(rows.T), covariance, atol=2 * error)
