"""A row's score follows from the model, the row, the seed and the options alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer

QUICK: dict[str, object] = {"max_steps": 60, "evaluate_every_steps": 20, "d_hidden": 32}
ROUNDING = 1e-4
"""In nats: matrix products of other shapes add in another order, in float32. A score with other
draws moves by a hundred times as much."""


def table() -> pd.DataFrame:
    random = np.random.default_rng(0)
    hidden = random.standard_normal(300)
    frame = pd.DataFrame(
        {
            "colour": np.array(["red", "green", "blue"], dtype=object)[
                np.digitize(hidden, [-0.5, 1.0])
            ],
            "length": (hidden + random.standard_normal(300)).round(2),
        }
    )
    frame.loc[random.choice(300, 60, replace=False), "colour"] = None
    return frame


@pytest.mark.parametrize(("preset", "jitters"), [("gcvae", 0), ("gcvae", 3), ("default", 0)])
def test_a_row_has_the_same_score_alone_in_other_company_and_in_other_order(
    preset: str, jitters: int
) -> None:
    rows = table()
    scored = Synthesizer.fit(rows, preset=preset, settings=QUICK, device="cpu")

    def scores(frame: pd.DataFrame, seed: int = 3) -> np.ndarray:
        lines = scored.log_likelihood(frame, draws=7, seed=seed, jitters=jitters)
        return lines[["log_likelihood", "standard_error"]].to_numpy()

    whole = scores(rows)
    assert scores(rows[::-1])[::-1] == pytest.approx(whole, abs=ROUNDING)
    assert scores(rows[100:]) == pytest.approx(whole[100:], abs=ROUNDING)
    for i in (0, 7, 150, int(rows["colour"].isna().argmax())):
        assert scores(rows.iloc[[i]])[0] == pytest.approx(whole[i], abs=ROUNDING)
    moved = np.abs(scores(rows, seed=4) - whole)[:, 0]
    assert np.median(moved) > 10 * ROUNDING
