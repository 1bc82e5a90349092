"""Levels in a learned order, rare ones in groups: exact round trips, and masses that sum to one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from gcvae.cells.values import parse_table
from gcvae.codec.correspondence import CoarseColumn, level_axis
from gcvae.codec.rare_levels import LEAST_ROWS_PER_LEVEL, MOST_OWN_CODES, GroupedLevelCodec
from gcvae.codec.table_codec import TableCodec
from gcvae.files.tables import read_table
from gcvae.numerics.generators import generator_for
from gcvae.profiling.infer import infer_schema
from gcvae.schema.columns import Column
from gcvae.schema.kinds import ColumnKind
from tests.lengths import first_of


def fitted(frame: pd.DataFrame, **kinds: str) -> tuple[pd.DataFrame, TableCodec]:
    given = {"columns": [{"name": name, "kind": kind} for name, kind in kinds.items()]}
    schema = infer_schema(frame, given).schema
    typed = parse_table(frame, schema)
    return typed, TableCodec.fit(typed, schema, encoding="quantile")


def cities(n: int = 4000) -> pd.DataFrame:
    """Cities, half of them rare, that belong to states; the states' names tell nothing."""
    random = np.random.default_rng(0)
    city = np.where(random.random(n) < 0.7, random.integers(0, 20, n), random.integers(20, 900, n))
    income = (city % 2) * 40.0 + random.normal(0.0, 3.0, n).round(3)
    names = np.array([f"c{(37 * c) % 1009}" for c in range(900)])
    return pd.DataFrame({"city": names[city], "income": income, "is_large": city < 20})


def codec_of(codec: TableCodec, name: str) -> GroupedLevelCodec:
    found = next(column for column in codec.columns if column.name == name)
    assert isinstance(found, GroupedLevelCodec)
    return found


@pytest.mark.parametrize("name", first_of("auto_mpg_with_missing", "shoppers", "adult_train"))
def test_a_real_table_decodes_to_what_it_was(name: str, data_dir: Path) -> None:
    typed, codec = fitted(read_table(data_dir / f"{name}.csv"))
    back = codec.decode(codec.encode(typed))
    kept = [column.name for column in codec.columns]
    pd.testing.assert_frame_equal(back[kept], typed[kept])
    assert TableCodec.from_json(codec.to_json()) == codec


def test_only_rare_levels_share_a_code() -> None:
    typed, codec = fitted(cities())
    column = codec_of(codec, "city")
    counts = typed["city"].value_counts().reindex(list(column.levels)).to_numpy()
    sharing = np.bincount(column.codes)[column.codes] > 1
    assert (counts[sharing] < LEAST_ROWS_PER_LEVEL).all()
    assert not sharing[counts >= LEAST_ROWS_PER_LEVEL].any()
    assert column.n_codes < 0.7 * len(column.levels)


def test_of_many_levels_the_frequent_have_a_code_and_others_share_one_with_those_as_frequent() -> (
    None
):
    counts = np.repeat([200, 20, 10, 6], [MOST_OWN_CODES, 150, 150, 150])
    levels = tuple(f"l{i}" for i in range(len(counts)))
    cells = pd.Series(np.repeat(levels, counts))
    column = GroupedLevelCodec.fit(cells, Column("x", ColumnKind.CATEGORICAL, levels=levels))
    sizes = np.bincount(column.codes)
    assert (sizes[column.codes][:MOST_OWN_CODES] == 1).all()
    rest, rows = column.codes[MOST_OWN_CODES:], counts[MOST_OWN_CODES:]
    assert (sizes[rest] > 1).all()
    groups = pd.Series(rows).groupby(rest)
    assert groups.nunique().value_counts().get(1, 0) >= len(groups) - 2  # where frequencies change
    assert groups.sum().between(30, 80).all()


def test_the_shares_of_the_levels_of_a_code_sum_to_one() -> None:
    typed, codec = fitted(cities())
    column = codec_of(codec, "city")
    each = pd.Series(list(column.levels), dtype=typed["city"].dtype)
    codes, positions = column.encode(each)
    shares = np.exp(-column.log_units(codes, positions))
    assert np.bincount(codes, weights=shares) == pytest.approx(1.0)


def test_levels_of_a_code_are_drawn_by_their_shares() -> None:
    typed, codec = fitted(cities())
    rows = codec.encode(typed)
    drawn = codec.decode(codec.with_positions(rows, generator_for(0, "positions")))
    wanted, found = (t["city"].value_counts() for t in (typed, drawn))
    assert (drawn["city"] != typed["city"]).mean() > 0.05
    assert wanted.sub(found, fill_value=0).abs().sum() / (2 * len(typed)) < 0.1
    assert torch.equal(codec.encode(drawn).codes, rows.codes)


def test_levels_stand_in_the_order_of_what_they_come_with() -> None:
    random = np.random.default_rng(0)
    place = random.integers(0, 12, 6000)
    frame = pd.DataFrame(
        {"place": np.array(list("hkcalbjgefid"))[place], "x": place + random.normal(0, 0.5, 6000)}
    )
    _, codec = fitted(frame)
    order = codec_of(codec, "place")
    found = "".join(str(order.levels[i]) for i in np.argsort(order.codes, kind="stable"))
    assert found in ("hkcalbjgefid", "hkcalbjgefid"[::-1])


def test_a_level_with_few_rows_stands_near_the_origin() -> None:
    levels = np.array([0] * 100 + [1] * 2 + [2] * 100)
    other = CoarseColumn("other", np.array([0] * 102 + [1] * 100), 2)
    axis = level_axis(levels, 3, [other])
    assert abs(axis[1]) < 0.4 * abs(axis[0])
    assert axis[0] * axis[2] < 0.0


def test_a_table_of_one_column_of_names_has_a_codec() -> None:
    frame = pd.DataFrame({"name": [f"n{i % 70}" for i in range(100)]})
    typed, codec = fitted(frame, name="categorical")
    pd.testing.assert_frame_equal(codec.decode(codec.encode(typed)), typed)
