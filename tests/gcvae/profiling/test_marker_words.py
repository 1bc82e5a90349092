"""Words that say that a number or a date is not known are missing cells, and levels elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer, format_table, infer_schema, parse_table
from gcvae.schema.inferred_schema import InferredSchema

N = 200


def numbers() -> list[str]:
    return [f"{x:.2f}" for x in np.random.default_rng(0).normal(size=N)]


def inferred(cells: list[str], *words: str, **said: object) -> InferredSchema:
    """Of a column with a word in each 33rd cell, and one more."""
    texts = [words[i // 33 % len(words)] if i % 33 == 0 else x for i, x in enumerate(cells)]
    table = pd.DataFrame({"x": texts, "y": np.arange(N) / 7})
    return infer_schema(table, {"columns": [{"name": "x", **said}]}, rules=False)


@pytest.mark.parametrize("word", ["n.a.", "N.A.", "unknown", "Unknown", "UNKNOWN", "-"])
def test_a_word_beside_numbers_means_missing(word: str) -> None:
    column = inferred(numbers(), word).schema["x"]
    assert (column.kind, column.missing.markers) == ("continuous", (word,))


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (pd.date_range("2024-01-01", periods=N).strftime("%d.%m.%Y").tolist(), "datetime"),
        ([f"{n}:15:00" for n in range(N)], "integer"),
        ([f"{x} €" for x in numbers()], "continuous"),
    ],
)
def test_a_word_beside_dates_durations_and_money_means_missing(cells: list[str], kind: str) -> None:
    found = inferred(cells, "unknown", "n.a.")
    assert found.schema["x"].kind == kind
    assert set(found.schema["x"].missing.markers) == {"unknown", "n.a."}
    assert any("which is treated as missing" in warning for warning in found.warnings)


@pytest.mark.parametrize("cells", [["yes", "no"], ["1", "2", "3"], ["red", "green"]])
def test_a_word_beside_few_levels_is_a_level(cells: list[str]) -> None:
    column = inferred((cells * N)[:N], "unknown").schema["x"]
    assert (column.kind, column.missing.allowed) == ("categorical", False)


def test_what_is_said_of_markers_wins() -> None:
    found = inferred(numbers(), "unknown", missing={"markers": []})
    assert found.schema["x"].kind == "categorical"
    assert not any("treated as missing" in warning for warning in found.warnings)


def test_a_number_that_is_censored_is_named() -> None:
    found = inferred(numbers(), "<5")
    assert any("numbers: row 0 holds '<5'" in warning for warning in found.warnings)


def test_drawn_rows_have_the_word_after_save_and_load(tmp_path: Path) -> None:
    cells = [x if i % 10 else "unknown" for i, x in enumerate(numbers())]
    table = pd.DataFrame({"x": cells, "y": np.arange(N) / 7})
    Synthesizer.fit(table, preset="fast", settings={"max_steps": 5}).save(tmp_path / "m.gcvae")
    model = Synthesizer.load(tmp_path / "m.gcvae")
    drawn = model.sample(500, seed=1)
    texts = format_table(drawn, model.schema)["x"]
    assert 0.02 < (texts == "unknown").mean() < 0.3
    assert parse_table(table, model.schema)["x"].isna().sum() == N / 10
    assert model.impute(table)["x"].ne("unknown").all()
