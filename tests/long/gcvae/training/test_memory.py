"""What a model remembers of the rows that it was trained on is told in its record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from gcvae import Synthesizer
from gcvae.training.fitting import memory_gap
from gcvae.training.loop import TrainingResult
from gcvae.training.preparation import prepared_table
from gcvae.training.schedule import Evaluation
from gcvae.training.settings import configure


def noise(n_rows: int) -> pd.DataFrame:
    """Columns that have nothing to do with each other: whatever is learned of them is by heart."""
    generator = np.random.default_rng(3)
    return pd.DataFrame({f"c{j}": generator.choice(list("abcdefgh"), n_rows) for j in range(8)})


@pytest.fixture(scope="module")
def model() -> Synthesizer:
    return Synthesizer.fit(noise(160), preset="fast", settings={"max_steps": 20})


def test_a_record_tells_the_gap_after_load_too(model: Synthesizer, tmp_path: Path) -> None:
    gap = model.training_record["memory_gap"]
    assert set(gap) == {"nats", "standard_error", "area", "rows"}
    assert gap["rows"] == 16
    assert abs(gap["nats"]) < 5 * gap["standard_error"], "twenty steps teach nothing by heart"
    model.save(tmp_path / "m.gcvae")
    assert Synthesizer.load(tmp_path / "m.gcvae").training_record["memory_gap"] == gap


def test_a_model_of_low_memory_learns_less_by_heart(tmp_path: Path) -> None:
    """Rows of training are likelier than unseen ones, and by far less where memory is low."""
    generator = np.random.default_rng(5)
    latents = generator.normal(size=(400, 2)) @ generator.normal(size=(2, 6))
    table = pd.DataFrame(latents + 0.1 * generator.normal(size=(400, 6))).add_prefix("x")
    seen, unseen = table[:200], table[200:].reset_index(drop=True)
    gaps = {}
    for memory in ("normal", "low"):
        settings = {"memory": memory, "max_steps": 400, "imagined_rows": 0}
        made = Synthesizer.fit(seen, preset="fast", settings=settings, progress=False)
        made.save(tmp_path / "m.gcvae")
        loaded = Synthesizer.load(tmp_path / "m.gcvae")
        assert loaded.training_record["settings"]["memory"] == memory
        known, unknown = (
            loaded.log_likelihood(rows, draws=20)["log_likelihood"].mean()
            for rows in (seen, unseen)
        )
        gaps[memory] = known - unknown
    assert gaps["normal"] > 1.0
    assert gaps["low"] < 0.8 * gaps["normal"]


@pytest.mark.parametrize("are_unlikely", [True, False])
def test_the_gap_is_that_of_rows_of_training_to_rows_held_out(
    model: Synthesizer, are_unlikely: bool
) -> None:
    """As if the rows that the model finds least likely, or most, had been held out."""
    config = configure("fast")
    with prepared_table(noise(160), None, config) as prepared:
        scores = model.log_likelihood(noise(160), draws=20)["log_likelihood"].to_numpy()
        order = np.argsort(scores if are_unlikely else -scores)
        held_out = torch.from_numpy(order[:40].copy())
        best = Evaluation(1, 0.0, 0.0)
        result = TrainingResult((best,), best, 1, 1, held_out, ())
        gap = memory_gap(model.model, prepared.rows, result, 0)
    assert gap["rows"] == 40
    expected = scores[order[40:]].mean() - scores[order[:40]].mean()
    assert gap["nats"] == pytest.approx(expected, abs=0.1)
    assert (gap["area"] > 0.95) if are_unlikely else (gap["area"] < 0.05)
