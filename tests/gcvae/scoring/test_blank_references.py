"""A row with blanks is ranked among rows of the model that have the same blanks."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer
from gcvae.files.shards import SHARD_UNIT_ROWS
from gcvae.scoring.blank_references import BlankRanks, mid_ranks
from gcvae.scoring.score_options import MOST_BLANK_SETS, ScoreOptions


@cache
def fitted() -> Synthesizer:
    random = np.random.default_rng(0)
    cause = random.normal(size=400)
    table = pd.DataFrame(
        {
            "weight": (60.0 + 12.0 * cause).round(1),
            "height": (170.0 + 9.0 * cause + random.normal(0.0, 4.0, 400)).round(1),
            "age": random.integers(18, 90, 400),
            "sex": np.where(cause + random.normal(size=400) > 0.0, "m", "f"),
        }
    )
    table.loc[::9, "age"] = np.nan
    settings = {"max_steps": 60, "evaluate_every_steps": 30}
    return Synthesizer.fit(table, preset="fast", settings=settings, device="cpu")


def blanked(rows: pd.DataFrame, *names: str) -> pd.DataFrame:
    return rows.assign(**dict.fromkeys(names))


@pytest.mark.slow
@pytest.mark.parametrize("blank", [("age", "sex"), ("weight", "height", "age")])
def test_rows_of_the_model_have_all_percentiles_alike(blank: tuple[str, ...]) -> None:
    """Among whole rows those of one known cell would nearly all be the likeliest."""
    known = fitted().sample(200, seed=11).dropna()
    percentiles = fitted().log_likelihood(blanked(known, *blank), draws=20)["percentile"]
    assert percentiles.mean() == pytest.approx(50.0, abs=7.0)
    assert percentiles.std() == pytest.approx(100.0 / 12**0.5, abs=6.0)


def test_a_percentile_is_that_among_drawn_rows_that_are_blanked_and_scored_alike() -> None:
    rows = pd.DataFrame({"weight": [60.0, 20.0, 66.0], "height": [171.0, 200.0, 160.0]})
    scored = fitted().log_likelihood(rows)
    others = blanked(fitted().sample(600, seed=5), "age", "sex")
    among = np.sort(fitted().log_likelihood(others, draws=20)["log_likelihood"].to_numpy())
    expected = mid_ranks(among, scored["log_likelihood"].to_numpy())
    assert scored["percentile"].to_numpy() == pytest.approx(expected, abs=5.0)
    assert scored["percentile"][1] < 1.0


def test_a_row_of_which_nothing_is_known_is_in_the_middle() -> None:
    rows = pd.DataFrame({"weight": [None], "height": [None]})
    assert fitted().log_likelihood(rows)["percentile"].tolist() == [50.0]


def test_of_equal_scores_half_are_below() -> None:
    reference = np.array([1.0, 2.0, 2.0, 3.0])
    assert mid_ranks(reference, np.array([0.0, 2.0, 2.5, 9.0])).tolist() == [0.0, 50.0, 75.0, 100.0]


def test_blanks_that_are_scored_are_known_cells() -> None:
    rows = fitted().sample(40, seed=2).assign(age=None)
    scored = fitted().log_likelihood(rows, draws=10, score_missingness=True)
    whole = np.asarray(fitted().scorer.reference["missingness_scored"])
    expected = mid_ranks(whole, scored["log_likelihood"].to_numpy())
    assert scored["percentile"].tolist() == expected.tolist()


def test_percentiles_come_again_after_save_and_load_in_any_order_of_columns() -> None:
    rows = blanked(fitted().sample(20, seed=3), "height")
    loaded = Synthesizer.from_bytes(fitted().to_bytes())
    again = loaded.log_likelihood(rows[rows.columns[::-1]], draws=10)["percentile"]
    assert again.tolist() == fitted().log_likelihood(rows, draws=10)["percentile"].tolist()


def test_the_first_sets_of_blanks_of_each_unit_have_percentiles() -> None:
    n_columns = 7
    sets = np.array([[i >> bit & 1 for bit in range(n_columns)] for i in range(1, 41)], dtype=bool)

    class Middle:
        def scores(self, is_blank: np.ndarray) -> np.ndarray:
            return np.zeros(1)

    def ranked(first_unit: int, n_units: int) -> list[list[bool]]:
        ranks = BlankRanks(Middle())  # type: ignore[arg-type]
        found = []
        for unit in range(first_unit, first_unit + n_units):
            order = np.roll(sets, unit, axis=0)
            for first in (0, 20):
                at = unit * SHARD_UNIT_ROWS + first
                part = ranks.percentiles(np.zeros(20), order[first : first + 20], at)
                found.append(np.isfinite(part).tolist())
        return found

    whole = ranked(0, 3)
    assert whole[:2] == [[True] * 20, [True] * (MOST_BLANK_SETS - 20) + [False] * 8]
    assert whole[2:] == ranked(1, 2)
    assert np.isnan(BlankRanks(Middle()).percentiles(np.zeros(3), sets[:3] & False, 0)).all()  # type: ignore[arg-type]


def test_what_a_percentile_is_among_stands_beside_it() -> None:
    notes = " ".join(ScoreOptions().heading(["a"])["notes"])
    assert "300 synthetic rows with the same cells missing" in notes
    assert f"first {MOST_BLANK_SETS} sets of missing columns" in notes
