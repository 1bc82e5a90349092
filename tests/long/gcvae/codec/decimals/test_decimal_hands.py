"""Rows whose numbers have their decimals together: tables of several sources."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer
from gcvae.cells.values import parse_table
from gcvae.codec.table_codec import TableCodec
from gcvae.profiling.infer_schema import infer_schema

SETTINGS = {"max_steps": 60, "d_hidden": 16, "d_latent": 2, "d_sum": 8, "d_column": 8}


def two_sources(n: int = 3000) -> pd.DataFrame:
    """Half of the rows of `b` have four decimals throughout, all others have two."""
    random = np.random.default_rng(0)
    source = random.choice(["a", "b"], n)
    is_fine = (source == "b") & (random.random(n) < 0.5)
    columns = {
        name: [f"{x:.{4 if fine else 2}f}" for x, fine in zip(values, is_fine, strict=True)]
        for name in ("x", "y", "z")
        if len(values := random.normal(500.0, 90.0, n))
    }
    return pd.DataFrame({"source": source, **columns})


def are_fine(rows: pd.DataFrame, name: str) -> pd.Series[bool]:
    return rows[name].round(2) != rows[name]


@pytest.fixture(scope="module")
def fitted() -> Synthesizer:
    return Synthesizer.fit(two_sources(), settings=SETTINGS, seed=0, device="cpu")


def test_decimals_of_a_row_go_together_and_with_the_levels_of_their_source(
    fitted: Synthesizer,
) -> None:
    rows = fitted.sample(6000, seed=1)
    fine = pd.DataFrame({name: are_fine(rows, name) for name in ("x", "y", "z")})
    assert fine.mean().to_list() == pytest.approx([0.25] * 3, abs=0.03)
    assert (fine["x"] == fine["y"]).mean() > 0.97  # one fine number in a hundred ends in 00
    assert (fine["x"] == fine["z"]).mean() > 0.97
    of_source = fine["x"].groupby(rows["source"], observed=True).mean()
    assert of_source["a"] < 0.02
    assert of_source["b"] == pytest.approx(0.5, abs=0.05)


def test_a_model_that_was_saved_draws_the_same_rows(fitted: Synthesizer) -> None:
    loaded = Synthesizer.from_bytes(fitted.to_bytes())
    assert loaded.codec == fitted.codec
    pd.testing.assert_frame_equal(loaded.sample(500, seed=2), fitted.sample(500, seed=2))
    document = json.loads(json.dumps(fitted.codec.to_json()))
    assert TableCodec.from_json(document).hands is not None


def test_decimals_that_are_drawn_apart_have_no_hands() -> None:
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            name: [
                f"{x:.{d}f}"
                for x, d in zip(
                    random.normal(500.0, 90.0, 3000), random.choice([2, 4], 3000), strict=True
                )
            ]
            for name in ("x", "y", "z")
        }
    )
    schema = infer_schema(table).schema
    assert TableCodec.fit(parse_table(table, schema), schema, numbers="quantile").hands is None
