"""SPECT's manifold in its short form: probabilities on the grid, and its picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from experiments.budgets import BUDGETS
from experiments.manifold_pictures import MODELS, probabilities, run_spect
from experiments.uci import SPECT
from gcvae import Synthesizer


def test_a_run_on_spect_has_a_line_for_each_model_and_one_picture(
    data_dir: Path, tmp_path: Path
) -> None:
    lines = list(run_spect(BUDGETS["look"], data_dir, tmp_path))
    assert [line["model"] for line in lines] == [*MODELS]
    assert all(0.0 < line["roughness"] < line["reach"] < 1.0 for line in lines)
    assert (tmp_path / "spect-manifold.png").read_bytes().startswith(b"\x89PNG")


def test_the_probabilities_are_those_of_the_librarys_manifold(data_dir: Path) -> None:
    frame = SPECT.read(data_dir)
    fitted = Synthesizer.fit(
        frame, schema=SPECT.schema(frame), preset="paper-gcvae",
        settings={"max_steps": 20, "d_latent": 2}, device="cpu",
    )  # fmt: skip
    found, manifold = probabilities(fitted, 4), fitted.manifold(4)
    for j, column in enumerate(manifold.columns):
        np.testing.assert_allclose(found[..., j], column.probability[..., 1], atol=1e-6)
