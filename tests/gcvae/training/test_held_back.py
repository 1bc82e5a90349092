"""Laws of the rows that training holds back for a report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer, TableReader
from gcvae.codec.name_lists import names_of
from gcvae.errors import SettingError
from gcvae.training.held_back import MOST_REPORT_ROWS, report_rows
from gcvae.training.reporting.report_rows import rows_of_report
from tests.wordings import refuses

_SHARE, _SEED = 0.2, 3


def _table() -> pd.DataFrame:
    return pd.DataFrame({"数": [i % 7 + i / 100 for i in range(60)], "level": list("abc") * 20})


def _fit(table: object, **settings: object) -> Synthesizer:
    few = {"max_steps": 3, **settings}
    return Synthesizer.fit(table, preset="fast", settings=few, seed=_SEED)


def test_a_model_is_the_one_of_a_table_without_the_rows_that_are_held_back(tmp_path: Path) -> None:
    table = _table()
    held_back = report_rows(len(table), _SHARE, _SEED)
    table.loc[held_back[0], "level"] = "nobody else's"
    table.loc[held_back[1], "数"] = 1e6
    table.to_csv(tmp_path / "table.csv", index=False)
    table.to_parquet(tmp_path / "table.parquet")

    expected = _fit(table.drop(index=held_back))
    for whole in (table, TableReader(tmp_path / "table.csv"), tmp_path / "table.parquet"):
        found = _fit(whole, report_share=_SHARE)
        assert found.codec.to_json()["columns"] == expected.codec.to_json()["columns"]
        digest = found.training_record["table_sha256"]
        assert digest == expected.training_record["table_sha256"]
        weights, others = found.model.state_dict(), expected.model.state_dict()
        assert all(weights[name].equal(others[name]) for name in others)


def test_held_back_rows_are_a_function_of_rows_share_and_seed() -> None:
    assert report_rows(10, 0.0, 1).tolist() == []
    found = report_rows(1_000, 0.1, 1)
    assert found.tolist() == report_rows(1_000, 0.1, 1).tolist() == sorted({*found.tolist()})
    assert found.tolist() != report_rows(1_000, 0.1, 2).tolist()
    assert len(found) == 100
    assert len(report_rows(10 * MOST_REPORT_ROWS, 0.5, 1)) == MOST_REPORT_ROWS


@pytest.mark.parametrize("share", [-0.1, 0.6])
def test_a_share_out_of_range_is_refused(share: float) -> None:
    with refuses(SettingError):
        _fit(_table(), report_share=share)


def test_no_key_or_personal_cell_of_the_rows_that_are_held_back_is_generated(
    tmp_path: Path,
) -> None:
    names = names_of("en_US")
    numbers = np.random.default_rng(0).choice(names.n_pairs, 1_000, replace=False)
    people = [
        f"{a} {b}"
        for sex, _, first, last in names.split(numbers.astype(np.uint64))
        for a, b in zip(sex.first[first], sex.last[last], strict=True)
    ]
    n = range(len(people))
    table = pd.DataFrame({"name": people, "key": [f"K{i * 7919 % 10_000:04d}" for i in n]})
    table["phone"] = [f"+49 30 {i * 7919 % 10_000:04d}" for i in n]
    table["user_name"] = [text[0].lower() + text.split()[1].lower() for text in people]
    table["group"] = ["a", "b"] * (len(table) // 2)
    held_back = report_rows(len(table), 0.5, _SEED)
    table.loc[held_back, "user_name"] += "7"
    table.to_csv(tmp_path / "table.csv", index=False)
    for whole in (table, tmp_path / "table.csv"):
        drawn = _fit(whole, report_share=0.5).sample(9_000, seed=1)
        for name in ("name", "key", "phone", "user_name"):
            assert not {*drawn[name]} & {*table[name]}, name


def test_replay_is_searched_for_in_the_rows_that_are_held_back_too() -> None:
    table = _table()
    rows = rows_of_report(_fit(table, report_share=_SHARE), table, table[:10], None, 0)
    assert sorted(rows.whole["数"]) == sorted(table["数"])
    assert len(rows.seen) == len(table) - len(report_rows(len(table), _SHARE, _SEED))
