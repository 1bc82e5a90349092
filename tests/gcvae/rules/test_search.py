"""The rules of tables whose rules are known, and none in tables without."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.known_truth.orders import draw_orders
from gcvae.cells.values import parse_table
from gcvae.files.tables import read_table
from gcvae.profiling.infer import infer_schema
from gcvae.rules.search import RuleFinding, find_rules

N = 1_500


def found_in(frame: pd.DataFrame) -> dict[str, RuleFinding]:
    """The rules of a table of cells, by their words."""
    schema = infer_schema(frame, rules=False).schema
    return {str(f.rule): f for f in find_rules(parse_table(frame, schema), schema)}


def random_of(seed: int) -> np.random.Generator:
    """Draws of a seed."""
    return np.random.default_rng(seed)


def test_each_rule_of_a_table_of_orders_is_found_whatever_the_order_of_columns() -> None:
    orders = draw_orders(3_000, seed=5)
    found = found_in(orders)
    total = found["total == price * quantity"]
    assert set(found) == {
        "total == price * quantity",
        "shipped >= ordered",
        "paid >= ordered",
        "country determines currency",
        "product determines category",
        "method is missing exactly where paid is",
    }
    assert 0.97 < (total.rule.share or 0) == total.kept / total.rows < 0.99
    assert len(total.exceptions) == 10
    assert found["shipped >= ordered"].exceptions == ()
    turned = found_in(orders[orders.columns[::-1]])
    assert "total == quantity * price" in turned
    assert {
        "shipped >= ordered",
        "country determines currency",
        "product determines category",
    } <= set(turned)


def test_the_rules_of_flights_are_found(data_dir: Path) -> None:
    found = found_in(read_table(data_dir / "flights.csv"))
    shares = {
        'month == month(time_hour, "America/New_York")': 1.0,
        'day == day(time_hour, "America/New_York")': 1.0,
        'hour == hour(time_hour, "America/New_York")': 1.0,
        "sched_dep_time == 100 * hour + minute": 1.0,
        "dep_time == clock(sched_dep_time, dep_delay, 2400)": 1.0,
        "arr_time == clock(sched_arr_time, arr_delay, 2400)": 1.0,
        "carrier determines airline": 1.0,
        "tailnum determines carrier": 29_776 / 29_786,
        "origin and dest determine distance": 29_992 / 30_000,
        "dep_delay is missing exactly where dep_time is": 1.0,
        "arr_time is missing wherever dep_time is": 1.0,
        "arr_delay is missing wherever arr_time is": 1.0,
        "air_time is missing exactly where arr_delay is": 1.0,
    }
    assert {words: f.rule.share for words, f in found.items()} == shares


def test_a_sum_has_plain_factors_and_few_remainders() -> None:
    random = random_of(1)
    net = np.round(random.lognormal(3, 1, N), 2)
    tax = np.round(net * 0.19, 2)
    tip = np.round(random.random(N) * random.choice([0, 5], N), 2)
    extra = random.choice([0, 0.5, 1.0], N, p=[0.7, 0.2, 0.1])
    total = net + tax + tip + extra
    fare = pd.DataFrame({"netto": net, "税": tax, "tip": tip, "total": total})
    found = found_in(fare.map(lambda x: f"{x:.2f}"))
    assert set(found) == {"税 == 0.19 * netto", "total ≈ netto + 税 + tip ± 1"}
    total[random.random(N) < 0.04] *= 0.9
    found = found_in(fare.assign(total=total).map(lambda x: f"{x:.2f}"))
    words = next(words for words in found if words.startswith("total "))
    assert 0.94 < (found[words].rule.share or 0) < 0.98


def test_units_are_factors_and_the_plainer_way_round_is_taken() -> None:
    celsius = np.round(random_of(2).normal(15, 8, N), 1)
    table = pd.DataFrame({"f": 1.8 * celsius + 32, "c": celsius})
    assert set(found_in(table.map(lambda x: f"{x:.1f}"))) == {"f == 1.8 * c + 32"}
    seconds = 60 * random_of(3).integers(1, 5_000, N)
    table = pd.DataFrame({"minutes": seconds // 60, "seconds": seconds}).astype(str)
    assert set(found_in(table)) == {"seconds == 60 * minutes"}


def test_parts_of_dates_are_of_the_date_that_has_them_and_times_lie_between_dates() -> None:
    random = random_of(4)
    start = pd.Series(pd.Timestamp("2022-03-01") + pd.to_timedelta(
        random.integers(0, 86_400 * 500, N), "s"
    ))  # fmt: skip
    gone = random.geometric(1 / 400_000, N)
    table = pd.DataFrame(
        {
            "end": start + pd.to_timedelta(gone, "s"),
            "start": start,
            "took": gone,
            "weekday": (start.dt.dayofweek + 1) % 7,
            "quarter": start.dt.quarter,
            "noise": random.integers(0, 24, N),
        }
    ).astype(str)
    assert set(found_in(table)) == {
        "weekday == (day_of_week(start) + 1) % 7",
        "quarter == quarter(start)",
        "took == 86400 * (end - start)",
        "end >= start",
    }


def test_an_order_is_no_news_where_ranges_hardly_meet_or_only_ranks_agree() -> None:
    random = random_of(5)
    small, large = random.normal(10, 3, N), random.normal(1_000, 200, N)
    twice = 2 * large + random.normal(0, 100, N)
    table = pd.DataFrame({"small": small, "large": large, "twice": twice})
    assert found_in(table.map(lambda x: f"{x:.1f}")) == {}
    low = random.normal(0, 10, N)
    table = pd.DataFrame({"high": low + random.exponential(1, N), "low": low})
    assert set(found_in(table.map(lambda x: f"{x:.2f}"))) == {"high >= low"}


def test_levels_determine_others_the_first_of_equals_all_others_and_blanks_follow() -> None:
    random = random_of(6)
    city = random.choice(60, N, p=random.dirichlet(np.ones(60)))
    table = pd.DataFrame(
        {
            "code": [f"R{c % 12}" for c in city],
            "città": [f"city {c}" for c in city],
            "地区": [f"region {c % 12}" for c in city],
            "seen": np.where(random.random(N) < 0.2, "", "yes"),
        }
    )
    table["by"] = np.where((table["seen"] == "") | (random.random(N) < 0.1), "", "me")
    assert set(found_in(table)) == {
        "code determines 地区",
        "città determines code",
        "by is missing wherever seen is",
    }


def test_strong_dependence_alone_is_no_rule() -> None:
    random = random_of(7)
    scores = random.multivariate_normal(np.zeros(4), 0.1 * np.eye(4) + 0.9, 4 * N)
    whole = np.rint(scores * 3).astype(int)
    levels = np.array([f"x{k}" for k in np.clip(whole[:, 3], -4, 4)])
    table = pd.DataFrame(whole[:, :3], columns=["a", "b", "c"]).assign(level=levels)
    assert found_in(table.astype(str)) == {}


@pytest.mark.parametrize("rows", [2, 30])
def test_tables_of_few_rows_have_no_rules_that_need_more(rows: int) -> None:
    table = pd.DataFrame({"a": range(rows), "b": range(1, rows + 1), "c": ["x"] * rows})
    schema = infer_schema(table.assign(d=[str(i % 2) for i in range(rows)]), rules=False)
    assert find_rules(parse_table(table.assign(d="0"), schema.schema), schema.schema) == []


def test_numbers_at_the_ends_of_float64_are_left_alone() -> None:
    random = random_of(8)
    plain = random.normal(size=N)
    table = pd.DataFrame(
        {
            "huge": random.uniform(-1, 1, N) * 1.7e308,
            "mixed": np.where(random.random(N) < 0.9, 0, random.normal(size=N) * 1e200),
            "tiny": random.normal(size=N) * 1e-300,
            "wide": random.integers(-(2**62), 2**62, N),
            "plain": plain,
            "twice": 2 * plain,
        }
    )
    assert set(found_in(table)) == {"twice == 2 * plain"}


def test_a_part_of_a_date_is_no_rule_of_words_that_it_is_not() -> None:
    years = np.arange(1900, 1990)
    table = pd.DataFrame(
        {"day": [f"{year}-01-01" for year in years], "word": np.where(years % 3, "a", "b")}
    )
    assert found_in(table) == {}
    random = random_of(9)
    years = random.integers(2015, 2020, N)
    months = random.integers(1, 9, N)
    table = pd.DataFrame(
        {
            "day": [f"{year}-0{month}-01" for year, month in zip(years, months, strict=True)],
            "word": np.where(random.random(N) < 0.02, "unknown", years.astype(str)),
        }
    )
    assert {finding.rule.column for finding in found_in(table).values()} <= {"word"}


def test_a_column_may_be_called_self_in_a_rule() -> None:
    random = np.random.default_rng(0)
    cells = {"self": random.integers(10, 99, 300), "b": random.integers(2, 20, 300)}
    frame = pd.DataFrame(cells).astype(float)
    frame["total"] = frame["self"] * frame["b"]
    frame["part"] = frame["b"] / frame["self"]
    rules = infer_schema(frame.round(2)).rules
    assert any({"self", "b", "total"} == {*rule["columns"]} for rule in rules)
