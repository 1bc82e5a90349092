"""What answers a frame row by row has the frame's index, whatever it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae import Synthesizer
from gcvae.errors import SettingError
from tests.fitted.models import fitted, mixed_frame
from tests.lengths import tries
from tests.wordings import refuses

N = 12
INDEXES: dict[str, pd.Index[Any]] = {
    "shuffled": pd.Index(np.random.default_rng(1).permutation(N)),
    "names": pd.Index([f"строка {i % 5}" for i in range(N)], name="который"),
    "several levels": pd.MultiIndex.from_product([["a", "b"], range(N // 2)], names=["x", None]),
    "dates": pd.date_range("2024-01-01", periods=N, tz="Europe/Paris", name="at"),
}
Answer = Callable[[Synthesizer, pd.DataFrame], pd.DataFrame]
ANSWERS: dict[str, Answer] = {
    "impute": lambda model, rows: model.impute(rows),
    "impute_blocks": lambda model, rows: pd.concat(model.impute_blocks(rows)),
    "log_likelihood": lambda model, rows: model.log_likelihood(rows, draws=2),
    "score_blocks": lambda model, rows: pd.concat(model.score_blocks(rows, draws=2)),
    "encode": lambda model, rows: model.encode(rows),
    "encode_blocks": lambda model, rows: pd.concat(model.encode_blocks(rows)),
    "sample": lambda model, rows: model.sample(given_rows=rows[["group"]], seed=1),
}


def rows_with(index: pd.Index[Any]) -> pd.DataFrame:
    rows = mixed_frame().head(N).drop(columns="key")
    rows.loc[::3, "height"] = np.nan
    return rows.set_index(index)


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_has_the_index_of_its_rows(answer: Answer, index: pd.Index[Any]) -> None:
    rows = rows_with(index)
    found = answer(fitted(), rows)
    pd.testing.assert_index_equal(found.index, index, exact=True)
    plain = answer(fitted(), rows.reset_index(drop=True))
    pd.testing.assert_frame_equal(found.reset_index(drop=True), plain.reset_index(drop=True))


@tries(12)
@given(order=st.permutations(range(N)))
def test_known_cells_of_shuffled_rows_stay_where_they_are(order: list[int]) -> None:
    rows = rows_with(pd.RangeIndex(N)).iloc[order]
    known = rows["height"].notna()
    filled = rows.assign(height=fitted().impute(rows)["height"])
    assert (filled.loc[known, "height"] == rows.loc[known, "height"]).all()
    assert filled["height"].notna().all()


def test_several_draws_of_a_row_have_its_label() -> None:
    rows = rows_with(INDEXES["names"])
    found = fitted().impute(rows, draws=3)
    assert found.index.tolist() == rows.index.repeat(3).tolist()
    assert found.index.name == rows.index.name


def test_a_frame_longer_than_a_block_and_frames_without_an_index_are_numbered_through() -> None:
    rows = pd.concat([rows_with(pd.RangeIndex(N))] * 400).iloc[::-1]
    assert fitted().encode(rows).index.tolist() == rows.index.tolist()
    table = polars.from_pandas(rows_with(pd.RangeIndex(N)))
    assert fitted().impute(table)["weight"].to_list() == (
        fitted().impute(table.to_pandas())["weight"].to_list()
    )
    assert [block.index[0] for block in fitted().encode_blocks(rows.reset_index(drop=True))] == [
        0,
        4096,
    ]


def test_a_model_that_was_loaded_keeps_the_index_too() -> None:
    model = Synthesizer.from_bytes(fitted().to_bytes())
    rows = rows_with(INDEXES["several levels"])
    pd.testing.assert_index_equal(model.impute(rows).index, rows.index)


def test_more_rows_than_memory_holds_are_refused_at_once() -> None:
    with refuses(SettingError, "/rows"):
        fitted().sample(10**12, seed=0)
