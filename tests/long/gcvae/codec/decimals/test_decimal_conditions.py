"""Numbers whose decimals go by the other cells of their row."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from gcvae import Synthesizer
from gcvae.cells.values import parse_table
from gcvae.codec.table_codec import TableCodec
from gcvae.numerics.generators import generator_for
from gcvae.profiling.infer_schema import infer_schema

SETTINGS = {"max_steps": 60, "d_hidden": 16, "d_latent": 2, "d_sum": 8, "d_column": 8}


def prices(n: int = 3000) -> pd.DataFrame:
    """Those in yen are whole, half of the others have two decimals and half three."""
    random = np.random.default_rng(0)
    currency = random.choice(["JPY", "EUR", "USD"], n)
    decimals = np.where(currency == "JPY", 0, random.choice([2, 3], n))
    numbers = random.gamma(9.0, 6000.0, n)
    written = [f"{x:.{d}f}" for x, d in zip(numbers, decimals, strict=True)]
    return pd.DataFrame({"currency": currency, "price": written, "rate": random.normal(size=n)})


def means(n: int = 4000) -> pd.DataFrame:
    """Means of so many whole numbers, to nine digits."""
    random = np.random.default_rng(0)
    count = random.integers(1, 40, n)
    numbers = random.integers(20 * count, 90 * count) / count
    return pd.DataFrame({"count": count, "mean": [f"{x:.7f}" for x in numbers]})


def codec_of(table: pd.DataFrame) -> TableCodec:
    schema = infer_schema(table).schema
    return TableCodec.fit(parse_table(table, schema), schema, numbers="quantile", levels="learned")


def are_of(numbers: pd.Series[Any], denominators: range) -> pd.Series[bool]:
    """Whether seven decimals can be a fraction of one of these."""
    found = [np.abs(numbers * q - (numbers * q).round()) <= 0.6e-7 * q for q in denominators]
    return pd.Series(np.any(found, axis=0), index=numbers.index)


@pytest.fixture(scope="module")
def fitted() -> Synthesizer:
    return Synthesizer.fit(prices(), settings=SETTINGS, seed=0, device="cpu")


def test_decimals_go_by_the_level_beside_them(fitted: Synthesizer) -> None:
    rows = fitted.sample(6000, seed=1)
    is_yen = rows["currency"] == "JPY"
    assert 0.2 < is_yen.mean() < 0.5
    assert (rows["price"][is_yen] % 1 == 0).mean() > 0.99
    others = rows["price"][~is_yen]
    assert (others % 1 == 0).mean() < 0.02
    assert (others.round(2) != others).mean() == pytest.approx(0.45, abs=0.04)  # a tenth end in 0


def test_a_model_that_was_saved_draws_the_same_rows(fitted: Synthesizer) -> None:
    loaded = Synthesizer.from_bytes(fitted.to_bytes())
    assert loaded.codec == fitted.codec
    assert loaded.codec.decimal_trees
    pd.testing.assert_frame_equal(loaded.sample(500, seed=2), fitted.sample(500, seed=2))


def test_fractions_go_by_the_number_beside_them() -> None:
    fitted = Synthesizer.fit(means(), settings=SETTINGS, seed=0, device="cpu")
    rows = fitted.sample(6000, seed=1)
    few = rows["count"] <= 3
    assert are_of(rows["mean"][few], range(1, 4)).mean() > 0.7
    assert (rows["mean"][rows["count"] > 12] % 1 == 0).mean() < 0.15
    assert are_of(rows["mean"], range(1, 40)).mean() > 0.9


def test_decimals_go_by_numbers_that_all_but_few_have_codes_of_their_own() -> None:
    """Seconds on few pages are whole, on more of them less often; single rows have hundreds."""
    random = np.random.default_rng(0)
    pages = random.geometric(0.06, 6000)
    pages[:400] = 100 + random.choice(5000, 400, replace=False)
    is_whole = random.random(6000) < np.exp(-pages / 8.0)
    seconds = random.uniform(100.0, 999.0, 6000)
    texts = [f"{x:.{0 if whole else 7}f}" for x, whole in zip(seconds, is_whole, strict=True)]
    table = pd.DataFrame({"pages": pages, "seconds": texts})
    codec = codec_of(table)
    codec = TableCodec.from_json(json.loads(json.dumps(codec.to_json())))
    rows = codec.encode(parse_table(table, codec.schema))
    # Other digits than the table's: only the shares of roundings are left.
    moved = replace(rows, values=rows.values + 1e-4 * torch.randn_like(rows.values))
    drawn = codec.decode(codec.with_positions(moved, generator_for(0, "decimals")))
    for few, many in ((1, 4), (5, 9), (10, 16), (17, 40)):
        own = (pages >= few) & (pages <= many)
        share = (drawn["seconds"][own] % 1 == 0).mean()
        assert share == pytest.approx(is_whole[own].mean(), abs=0.12)


def test_decimals_that_go_by_nothing_have_no_tree() -> None:
    n_trees = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        columns: dict[str, Any] = {
            name: [
                f"{x:.{d}f}"
                for x, d in zip(
                    random.normal(500.0, 90.0, 1500), random.choice([1, 3], 1500), strict=True
                )
            ]
            for name in ("x", "y")
        }
        columns["level"] = random.choice(list("abcde"), 1500)
        columns["number"] = random.normal(size=1500)
        n_trees += len(codec_of(pd.DataFrame(columns)).decimal_trees)
    assert n_trees <= 1


def test_a_tree_is_a_document() -> None:
    codec = codec_of(prices())
    assert codec.decimal_trees
    document = json.loads(json.dumps(codec.to_json(), allow_nan=False))
    assert TableCodec.from_json(document) == codec
    split = codec.decimal_trees[codec.places["price"]].splits[0]
    assert codec.columns[split.column].name == "currency"


def test_a_column_of_repeated_numbers_alone_has_no_tree() -> None:
    random = np.random.default_rng(0)
    few = random.choice([f"{x:.{d}f}" for x in range(10, 70) for d in (0, 2)], 1500)
    halves = [f"{x + 0.5}" if x % 3 else f"{x}" for x in random.integers(0, 200, 1500)]
    table = pd.DataFrame({"few": few, "halves": halves, "level": random.choice(list("ab"), 1500)})
    assert not codec_of(table).decimal_trees
