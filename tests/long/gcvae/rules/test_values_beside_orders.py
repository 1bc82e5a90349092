"""Orders with a value of their upper column beside them: no end yet, or none at all."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer, infer_schema
from gcvae.cells.values import format_table
from gcvae.errors import SchemaError
from tests.wordings import refuses

N = 2_000
SHORT = {"max_steps": 60, "batch_size": 256}


def stays(never: str = "2099-12-31") -> pd.DataFrame:
    """Stays of which a quarter has no end."""
    random = np.random.default_rng(0)
    start = pd.Timestamp("2019-01-01") + pd.to_timedelta(random.integers(0, 1500, N), unit="D")
    end = start + pd.to_timedelta(random.gamma(2, 60, N).astype(int), unit="D")
    until = np.where(random.random(N) < 0.25, never, end.strftime("%Y-%m-%d"))
    return pd.DataFrame({"до": until, "от": start.strftime("%Y-%m-%d")})


def games() -> pd.DataFrame:
    """First and last round, of few that all rows can be counted; 0 where it never ended."""
    random = np.random.default_rng(1)
    first = random.integers(30, 34, N)
    last = np.where(random.random(N) < 0.3, 0, first + random.binomial(3, 0.4, N))
    return pd.DataFrame({"last": last, "first": first})


def found(table: pd.DataFrame) -> list[str]:
    return [str(rule) for rule in infer_schema(table).schema.rules or ()]


def test_what_stands_apart_is_found_beside_the_order() -> None:
    assert found(stays()) == ["до >= от or до == '2099-12-31'"]
    assert found(stays("1900-01-01")) == ["до >= от or до == '1900-01-01'"]
    random = np.random.default_rng(2)
    first = random.integers(1990, 2016, N)
    last = np.where(random.random(N) < 0.25, 0, first + random.poisson(3, N))
    assert found(pd.DataFrame({"last": last, "first": first})) == ["last >= first or last == 0"]


def test_the_end_of_a_tail_does_not_stand_apart() -> None:
    table = stays()
    days = pd.to_datetime(table["от"])
    random = np.random.default_rng(3)
    late = days + pd.to_timedelta(random.exponential(200, N).astype(int), unit="D")
    assert found(table.assign(до=late.dt.strftime("%Y-%m-%d"))) == ["до >= от"]


def test_drawn_rows_end_later_or_never_also_of_a_saved_model(tmp_path: Path) -> None:
    Synthesizer.fit(stays(), seed=0, settings=SHORT).save(tmp_path / "m.gcvae")
    synthesizer = Synthesizer.load(tmp_path / "m.gcvae")
    rows = format_table(synthesizer.sample(N, 1), synthesizer.schema)
    never = rows["до"] == "2099-12-31"
    assert 0.15 < never.mean() < 0.35
    assert (rows["до"][~never] >= rows["от"][~never]).all()
    assert (rows["до"][~never] < "2030").all()
    assert np.isfinite(synthesizer.log_likelihood(stays()[:100])["log_likelihood"]).all()


def schema(rule: str, keep: str = "soft") -> dict[str, Any]:
    columns = [{"name": name, "kind": "integer"} for name in ("first", "last")]
    return {"columns": columns, "rules": [{"rule": rule, "keep": keep}]}


def fitted(keep: str = "soft") -> Synthesizer:
    document = schema("last >= first or last == 0", keep)
    return Synthesizer.fit(games(), schema=document, seed=0, settings=SHORT)


def test_masses_of_all_rows_add_up_to_one_and_what_breaks_the_order_has_none() -> None:
    model = fitted()
    rows = pd.DataFrame(
        [{"last": b, "first": a} for a, b in itertools.product(range(30, 34), [0, *range(28, 40)])]
    )
    scores = model.log_likelihood(rows, draws=300, measure="rounding_cell")[
        "log_likelihood"
    ].to_numpy()
    assert np.exp(scores).sum() == pytest.approx(1.0, abs=0.02)
    breaks = (rows["last"] < rows["first"]) & (rows["last"] != 0)
    assert (scores[breaks] < -12).all()


def test_conditions_may_name_what_stands_beside_and_what_does_not() -> None:
    model = fitted(keep="hard")
    assert set(model.sample(300, 1, given={"last": 0})["last"]) == {0}
    found = set(model.sample(300, 1, given={"last": {"min": 0, "max": 31}})["last"])
    assert found >= {0, 30, 31}
    assert found <= {0, 30, 31}
    over = model.sample(300, 1, given={"last": {"min": 33}})
    assert (over["last"] >= over["first"]).all()


def test_an_imputed_start_is_no_later_than_its_end() -> None:
    model = fitted()
    rows = pd.DataFrame({"last": [31] * 50 + [0] * 50, "first": [None] * 100})
    filled = model.impute(rows)
    first = filled["first"].astype(int)
    assert (first[:50] <= 31).all()
    assert first.between(30, 33).all()


@pytest.mark.parametrize(
    "beside",
    [
        "last == 'x'",
        "last == 0 or last == 1 or last == 2 or last == 3",
        "last == [0]",
        "first == 0",
    ],
)
def test_what_can_not_stand_beside_is_refused_with_its_place(beside: str) -> None:
    with refuses(SchemaError, "/rules/0"):
        infer_schema(games(), schema(f"last >= first or {beside}"))


def test_an_end_keeps_the_step_that_all_ends_have(tmp_path: Path) -> None:
    table = stays()
    for name in table:
        table[name] += " 00:00:00"
    Synthesizer.fit(table, seed=0, settings=SHORT).save(tmp_path / "m.gcvae")
    model = Synthesizer.load(tmp_path / "m.gcvae")
    assert [str(rule) for rule in model.schema.rules or ()] == [
        "до >= от or до == '2099-12-31 00:00:00'"
    ]
    rows = format_table(model.sample(N, 1), model.schema)
    assert rows["до"].str.endswith(" 00:00:00").all()
    early = model.sample(200, 1, given={"до": {"max": "2019-06-30 00:00:00"}})
    assert (early["до"] <= "2019-06-30 00:00:00").all()
    assert (early["до"] >= early["от"]).all()
    off = table[table["до"] < "2090"][:20].reset_index(drop=True)
    scores = [
        model.log_likelihood(rows)["log_likelihood"]
        for rows in (off, off.assign(до=off["до"].str.replace("00:00:00", "13:05:06")))
    ]
    assert (scores[0] - scores[1]).min() > 3.0


def test_hundreds_above_hundreds_are_hundreds() -> None:
    random = np.random.default_rng(0)
    low = random.integers(0, 10_000, N) * 100
    table = pd.DataFrame({"high": low + random.integers(0, 400, N) * 100, "low": low})
    rows = Synthesizer.fit(table, seed=0, settings=SHORT).sample(N, 1)
    assert (rows["high"] % 100 == 0).all()
    assert (rows["high"] >= rows["low"]).all()


@pytest.mark.parametrize("never", ["2099-12-31", "1900-01-01"])
def test_an_order_that_is_said_takes_what_stands_apart_by_itself(never: str) -> None:
    table, said = stays(never), {"rule": "до >= от"}
    model = Synthesizer.fit(table, schema={"rules": [said]}, seed=0, settings=SHORT)
    assert [str(rule) for rule in model.schema.rules or ()] == [f"до >= от or до == '{never}'"]
    drawn = format_table(model.sample(N, 1), model.schema)["до"]
    assert (drawn == never).mean() == pytest.approx((table["до"] == never).mean(), abs=0.05)
    assert (drawn[drawn != never] < "2030").all()


def test_an_order_that_is_hard_takes_no_value_that_breaks_it() -> None:
    said = {"rule": "до >= от", "keep": "hard"}
    [kept] = infer_schema(stays("2099-12-31"), {"rules": [said]}).schema.rules or ()
    assert str(kept) == "до >= от or до == '2099-12-31'"
    with refuses(SchemaError, "/rules/0"):
        infer_schema(stays("1900-01-01"), {"rules": [said]})
