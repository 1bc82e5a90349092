"""Numbers that are names are told from numbers that are quantities."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer, infer_schema
from gcvae.cells.values import parse_table
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.codec.table_codec import TableCodec

N = 4_000
SHOPS = 600


def visits(seed: int) -> pd.DataFrame:
    """Shops by number, each in a town of its own, and takings that rise with the staff."""
    random = np.random.default_rng(seed)
    town_of = np.random.default_rng(7).choice(list("abcdefgh"), SHOPS)
    shop = random.integers(0, SHOPS, N)
    staff = random.integers(1, 400, N)
    takings = 10 * staff + random.integers(0, 900, N)
    return pd.DataFrame(
        {"shop": 1000 + 7 * shop, "town": town_of[shop], "staff": staff, "takings": takings}
    )


def n_atoms(table: pd.DataFrame, name: str) -> int:
    """Atoms of a column, as the presets with quantiles have it."""
    schema = infer_schema(table).schema
    codec = TableCodec.fit(parse_table(table, schema), schema, numbers="quantile", levels="learned")
    column = codec.column_codec(name)
    assert isinstance(column, QuantileCodec)
    return len(column.atoms)


def test_a_number_that_foretells_what_its_neighbours_do_not_is_a_name() -> None:
    assert n_atoms(visits(0), "shop") > 0.5 * SHOPS


def test_numbers_that_foretell_what_their_neighbours_do_are_quantities() -> None:
    assert n_atoms(visits(0), "staff") < 10
    assert n_atoms(visits(0), "takings") < 10


def test_names_of_few_rows_are_no_atoms() -> None:
    table = pd.concat([visits(0), visits(1)[:4].assign(shop=99_999)], ignore_index=True)
    schema = infer_schema(table).schema
    codec = TableCodec.fit(parse_table(table, schema), schema, numbers="quantile", levels="learned")
    column = codec.column_codec("shop")
    assert isinstance(column, QuantileCodec)
    codes, _ = column.encode(pd.Series([99_999, 1000]))
    assert codes[0] == column.n_codes - 1


@pytest.mark.slow
def test_a_drawn_shop_is_in_its_town() -> None:
    model = Synthesizer.fit(visits(0), seed=0, settings={"max_steps": 150})
    rows = model.sample(N, 1)
    known = visits(0).drop_duplicates("shop").set_index("shop")["town"]
    in_town = rows["shop"].map(known) == rows["town"]
    assert in_town[rows["shop"].isin(known.index)].mean() > 0.8
