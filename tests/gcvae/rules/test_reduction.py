"""Tables as what their rules leave open: one to one, exact, and for every way to a model's rows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer, TableReader, read_table
from gcvae.cells.values import parse_table
from gcvae.codec.table_codec import TableCodec
from gcvae.errors import ConditionError
from gcvae.profiling.infer import infer_schema
from gcvae.rules.reduction import Reduction
from gcvae.schema.columns import TableSchema
from tests.lengths import first_of
from tests.wordings import refuses

RULES: list[dict[str, Any]] = [
    {"rule": "всего == 价格 * quantity"},
    {"rule": "`a shipped` >= ordered"},
    {"rule": "gross == net + tax"},
    {"rule": "month == month(ordered)"},
]
pytestmark = pytest.mark.usefixtures("few_rows")
_SETTINGS = {"max_steps": 40, "patience_steps": 40}


def orders(n: int = 600) -> pd.DataFrame:
    """Texts of orders: a product with discounts, an order of dates, a sum with blanks, a month."""
    rng = np.random.default_rng(n)
    price = np.round(rng.lognormal(3.0, 0.6, n)).clip(1) - 0.01
    quantity = rng.integers(1, 9, n)
    total = np.round(price * quantity, 2)
    discounted = rng.random(n) < 0.02
    total[discounted] = np.round(total[discounted] * 0.9, 2)
    ordered = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D")
    shipped = ordered + pd.to_timedelta(rng.geometric(0.3, n) - 1, "D")
    net = np.round(rng.lognormal(4.0, 0.5, n), 2)
    tax = np.round(0.2 * net, 2)
    frame = pd.DataFrame(
        {
            "всего": total,
            "价格": price,
            "quantity": quantity,
            "a shipped": shipped.strftime("%d.%m.%Y"),
            "month": ordered.month,
            "ordered": ordered.strftime("%d.%m.%Y"),
            "gross": np.round(net + tax, 2),
            "net": net,
            "tax": tax,
            "group": np.where(quantity > 4, "big", "small"),
        }
    ).astype(str)
    for name in ("tax", "gross"):
        frame.loc[rng.random(n) < 0.03, name] = ""
    return frame


def schema_of(frame: pd.DataFrame, rules: list[dict[str, Any]]) -> TableSchema:
    return infer_schema(frame, {"columns": [], "rules": rules}).schema


def typed_orders() -> tuple[pd.DataFrame, TableSchema]:
    frame = orders()
    schema = schema_of(frame, RULES)
    return parse_table(frame, schema), schema


@pytest.fixture(scope="module")
def fitted() -> Synthesizer:
    """A short fit, saved and loaded."""
    read = read_table(orders().to_csv(index=False).encode())
    model = Synthesizer.fit(
        read, schema={"columns": [], "rules": RULES}, preset="fast", settings=_SETTINGS
    )
    return Synthesizer.from_bytes(model.to_bytes())


@pytest.fixture(scope="module")
def free(fitted: Synthesizer) -> pd.DataFrame:
    """Rows without a condition."""
    return fitted.sample(10_000, seed=11)


def keeps(rows: pd.DataFrame) -> dict[str, float]:
    """The share of rows that keep each rule, among those where all its columns are known."""
    total, sums = np.round(rows["价格"] * rows["quantity"], 2), np.round(rows.net + rows.tax, 2)
    known = rows.gross.notna() & rows.tax.notna()
    return {
        "product": float((total == rows["всего"]).mean()),
        "order": float((rows.ordered <= rows["a shipped"]).mean()),
        "sum": float((sums == rows.gross)[known].mean()),
        "month": float((rows.ordered.dt.month == rows.month).mean()),
    }


def test_a_reduced_table_is_restored_to_the_cell() -> None:
    frame, schema = typed_orders()
    reduction = Reduction.of_table(frame, schema)
    reduced = reduction.reduce(frame)
    assert len(reduction) == 4
    assert (reduced["month"] == 0).all()
    assert reduced["a shipped"].min() == 0
    pd.testing.assert_frame_equal(reduction.restore(reduced)[list(frame)], frame)
    again = Reduction.from_json(reduction.to_json(), schema)
    pd.testing.assert_frame_equal(again.restore(reduced)[list(frame)], frame)


def payments(n: int = 700) -> pd.DataFrame:
    """Texts of payments: levels and truths that follow, a bill paid in one row of seven, a fee of
    each grade, an end that is at most a month away, a net price that is nearly the gross one."""
    rng = np.random.default_rng(n)
    start = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D")
    weekday = np.where(rng.random(n) < 0.02, "Sunday", start.day_name())
    bill = np.round(rng.lognormal(4.0, 0.5, n), 2)
    grade = rng.choice(["G1", "G2"], n)
    frame = pd.DataFrame(
        {
            "Tag": weekday,
            "始": start.strftime("%Y-%m-%d"),
            "paid": np.where(rng.random(n) < 1 / 7, bill, np.round(rng.lognormal(4.0, 0.5, n), 2)),
            "bill": bill,
            "fee": np.round(np.where(grade == "G1", 0.25, 0.5) * bill, 2),
            "grade": grade,
            "is high": np.where(bill > 60, "yes", "no"),
            "end": (start + pd.to_timedelta(rng.integers(0, 31, n), "D")).strftime("%d.%m.%Y"),
            "net": np.round(bill / 1.19 + rng.uniform(-0.5, 0.5, n), 2),
        }
    ).astype(str)
    for name in frame:
        frame.loc[rng.random(n) < 0.03, name] = ""
    return frame


FORMS: list[dict[str, Any]] = [
    {"rule": "Tag == weekday(始)"},
    {"rule": "paid == bill"},
    {"rule": "fee == rate[grade] * bill", "tables": {"rate": {"G1": 0.25, "G2": 0.5}}},
    {"rule": "`is high` == (bill > 60)"},
    {"rule": "end <= 始 + 30"},
    {"rule": "net ≈ bill / 1.19 ± 0.51"},
]


def test_every_form_of_a_formula_is_restored_to_the_cell() -> None:
    frame = payments()
    schema = schema_of(frame, FORMS)
    typed = parse_table(frame, schema)
    reduction = Reduction.of_table(typed, schema)
    assert reduction.rewritten.keys() == {rule.column for rule in schema.rules or ()}
    reduced = reduction.reduce(typed)
    for name, share in (("Tag", 0.97), ("paid", 0.14), ("is high", 1.0)):
        known = reduction.reduce(typed, [name], blanks_unknown=True)[name].dropna()
        usual = known.value_counts(normalize=True).iloc[0]
        assert usual == pytest.approx(share, abs=0.03), name
    again = Reduction.from_json(json.loads(json.dumps(reduction.to_json())), schema)
    for each in (reduction, again):
        pd.testing.assert_frame_equal(each.restore(reduced)[list(typed)], typed)


def test_rows_of_a_model_keep_every_form_of_a_formula_as_the_table_does() -> None:
    model = Synthesizer.fit(
        payments(), schema={"rules": FORMS}, preset="fast", settings=_SETTINGS, seed=1
    )
    kept = {rule["formula"]: rule for rule in model.training_record["rules"]}
    assert set(kept) == {rule["rule"] for rule in FORMS}
    for rule in kept.values():
        assert rule["share_of_drawn"] == pytest.approx(rule["share"], abs=0.04), rule


def test_rules_are_undone_in_the_order_of_their_parents_whatever_that_of_the_columns() -> None:
    x = np.arange(60) % 30
    frame = pd.DataFrame({"c": 3 * x + 7, "b": 2 * x + 7, "a": x, "d": np.arange(60) % 7}).astype(
        str
    )
    rules = [
        {"rule": "c == a + b"},
        {"rule": "b == 2 * a + 7"},
    ]
    schema = schema_of(frame, rules)
    typed = parse_table(frame, schema)
    codec = TableCodec.fit(typed, schema, encoding="quantile", with_rules=True)
    assert [rewriting.column for rewriting in codec.reduction.rewritings] == ["b", "c"]
    pd.testing.assert_frame_equal(codec.decode(codec.encode(typed)), typed)


def test_drawn_rows_keep_the_rules_as_the_table_does(fitted: Synthesizer) -> None:
    of_table = keeps(typed_orders()[0])
    drawn = keeps(fitted.sample(2000, seed=1))
    assert drawn["order"] == drawn["month"] == 1.0
    assert drawn["sum"] > 0.995  # but for sums beyond the largest of the table
    assert drawn["product"] == pytest.approx(of_table["product"], abs=0.02)


def test_a_file_gives_the_same_model_as_a_table_in_memory(
    tmp_path: Any, fitted: Synthesizer
) -> None:
    orders().to_csv(tmp_path / "orders.csv", index=False)
    of_file = Synthesizer.fit(
        TableReader(tmp_path / "orders.csv"),
        schema={"columns": [], "rules": RULES},
        preset="fast",
        settings=_SETTINGS,
    )
    pd.testing.assert_frame_equal(of_file.sample(50, seed=3), fitted.sample(50, seed=3))


def test_a_row_that_breaks_a_rule_has_the_exceptions_mass_or_none(fitted: Synthesizer) -> None:
    rows = typed_orders()[0].dropna().head(30).reset_index(drop=True)
    kept = fitted.log_likelihood(rows, draws=50)
    assert np.isfinite(kept.log_likelihood).all()
    discounted = fitted.log_likelihood(rows.assign(**{"всего": rows["всего"] - 1.0}), draws=50)
    assert np.isfinite(discounted.log_likelihood).all()
    assert (kept.log_likelihood - discounted.log_likelihood).median() > 5.0
    shifted = fitted.log_likelihood(rows.assign(month=rows.month % 12 + 1), draws=10)
    assert np.isneginf(shifted.log_likelihood).all()
    assert np.isneginf(shifted["contributions.month"]).all()
    contributions = kept.filter(like="contributions.")
    assert list(contributions) == [f"contributions.{name}" for name in rows]
    totals = contributions.sum(axis=1)
    np.testing.assert_allclose(totals, kept.log_likelihood)


@pytest.mark.parametrize("name", first_of("tax", "net", "quantity", "价格"))
def test_a_term_that_is_not_known_is_imputed_and_scored_by_its_rule(
    fitted: Synthesizer, name: str
) -> None:
    rows = typed_orders()[0].dropna().head(60).reset_index(drop=True)
    is_kept = np.round(rows["价格"] * rows["quantity"], 2) == rows["всего"]
    rows = rows[is_kept].reset_index(drop=True)
    blank = rows.assign(**{name: np.nan})
    filled = fitted.impute(blank, seed=2)
    assert (filled[name].astype(float) == rows[name].astype(float)).mean() > 0.95
    known, whole = (fitted.log_likelihood(r, draws=200) for r in (blank, rows))
    if name in ("tax", "net"):  # rules leave one value, but for a blank
        assert known.log_likelihood.median() <= whole.log_likelihood.median() + 0.5
    assert known.standard_error.median() < 0.5


CONDITIONS: dict[str, dict[str, Any]] = {
    "a total": {"всего": 59.97},
    "a range of totals": {"всего": {"min": 50, "max": 80}},
    "a sum": {"gross": {"min": 60, "max": 61}},
    "an end": {"a shipped": "05.05.2023"},
    "a range of ends": {"a shipped": {"min": "05.05.2023", "max": "05.07.2023"}},
    "a part of a date": {"month": [3, 4]},
    "a total beside a term": {"всего": {"min": 50, "max": 80}, "quantity": 4},
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_on_a_column_that_a_rule_gives_has_the_models_probability(
    fitted: Synthesizer, free: pd.DataFrame, name: str
) -> None:
    given = CONDITIONS[name]
    drawn = fitted.sample(150, seed=4, given=given)

    def meets(rows: pd.DataFrame) -> Any:
        met = np.ones(len(rows), dtype=bool)
        for column, wanted in given.items():
            is_date = rows[column].dtype.kind == "M"
            own = pd.to_datetime(rows[column]) if is_date else rows[column]

            def value(cell: Any, is_date: bool = is_date) -> Any:
                return pd.to_datetime(cell, format="%d.%m.%Y") if is_date else cell

            if isinstance(wanted, dict):
                found = own.between(value(wanted["min"]), value(wanted["max"]))
            else:
                wanted = wanted if isinstance(wanted, list) else [wanted]
                found = own.isin([value(cell) for cell in wanted])
            met &= found.fillna(False).to_numpy(dtype=bool)
        return met

    assert meets(drawn).all()
    share = meets(free).mean()
    error = 4.0 * np.sqrt(share / len(free)) + 0.15 * share
    assert drawn.attrs["probability"] == pytest.approx(share, abs=error)


def test_known_cells_that_break_a_rule_are_refused_with_its_words(fitted: Synthesizer) -> None:
    rows = typed_orders()[0].head(1)[["ordered", "month"]]
    with refuses(ConditionError, column="month"):
        fitted.sample(given_rows=rows.assign(month=rows.month % 12 + 1))


@pytest.mark.parametrize("kind", ["total", "data", "expected"])
def test_maps_are_of_the_written_columns(fitted: Synthesizer, kind: str) -> None:
    found = fitted.dependencies(kind)
    names = [name for name in orders() if name != "group"] + ["group"]
    assert list(found.columns) == names
    i, j = names.index("net"), names.index("gross")
    assert found.tau[i, j] > 0.5
    assert np.isfinite(found.tau).all()


def test_rules_none_leaves_the_table_as_it_is() -> None:
    model = Synthesizer.fit(
        orders(200),
        schema={"columns": [], "rules": RULES},
        preset="fast",
        settings={"max_steps": 5, "rules": "none"},
    )
    assert len(model.codec.reduction) == 0


def test_a_rule_that_is_off_is_not_modelled() -> None:
    frame = orders(200)
    schema = schema_of(frame, [RULES[0], RULES[1] | {"keep": "off"}])
    codec = TableCodec.fit(parse_table(frame, schema), schema, with_rules=True)
    assert list(codec.reduction.rewritten) == ["всего"]


def test_a_sum_that_lies_beyond_the_columns_limits_is_drawn_as_it_is_and_an_end_as_the_limit() -> (
    None
):
    rng = np.random.default_rng(4)
    ordered = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 400), "D")
    net, tax = rng.integers(1, 60, 400), rng.integers(0, 20, 400)
    table = pd.DataFrame({"net": net, "tax": tax, "gross": net + tax, "ordered": ordered})
    table["shipped"] = ordered + pd.to_timedelta(rng.geometric(0.2, 400), "D")
    table = table[table["gross"] <= 60].astype(str)
    rules = [{"rule": "gross == net + tax"}, {"rule": "shipped >= ordered"}]
    schema = schema_of(table, rules)
    model = Synthesizer.fit(table, schema=schema, preset="fast", settings={"max_steps": 4}, seed=1)
    rows = parse_table(model.sample(2000, seed=2), model.schema)
    assert rows["gross"].max() > model.schema["gross"].maximum
    assert (rows["net"] + rows["tax"] == rows["gross"]).all()
    assert (rows["ordered"] <= rows["shipped"]).all()
    assert rows["shipped"].max() <= pd.Timestamp(str(model.schema["shipped"].maximum))
    scores = Synthesizer.from_bytes(model.to_bytes()).log_likelihood(rows.tail(200), draws=8)
    assert np.isfinite(scores["log_likelihood"]).all()


def test_masses_of_a_text_that_a_formula_gives_with_exceptions_add_up_to_one() -> None:
    random = np.random.default_rng(0)
    days = pd.Series(
        pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 90, 1_500), "D")
    )
    names = np.array(["Mo", "Di", "Mi", "Do", "Fr", "Sa", "So"])
    said = np.where(
        random.random(1_500) < 0.06, random.choice(names, 1_500), names[days.dt.dayofweek]
    )
    table = pd.DataFrame({"day": days.dt.strftime("%Y-%m-%d"), "name": said})
    model = Synthesizer.fit(table, preset="fast", settings={"max_steps": 200}, seed=0, device="cpu")
    assert [str(rule) for rule in model.schema.rules or ()] == ["name == name[weekday(day)]"]
    rows = pd.DataFrame({"day": ["2024-02-07"] * 7, "name": names})
    log_joint = model.log_likelihood(rows, draws=200)["log_likelihood"]
    log_day = model.log_likelihood(rows[["day"]].head(1), draws=200)["log_likelihood"][0]
    masses = np.exp(log_joint - log_day)
    assert masses.idxmax() == 2
    assert masses.sum() == pytest.approx(1.0, abs=0.005)


def points(n: int, seed: int) -> pd.DataFrame:
    """Courses with their points, of which a student gets some."""
    random = np.random.default_rng(seed)
    at = random.integers(0, 20, n)
    full = np.array([3, 5, 6, 9, 10, 12])[at % 6]
    return pd.DataFrame(
        {
            "course": [f"course {i}" for i in at],
            "points": full,
            "earned": np.round(full * random.random(n)).astype(int),
        }
    )


@pytest.mark.parametrize(
    "rules",
    [
        {"rules": [{"rule": "points >= earned", "keep": "hard"}], "find_rules": True},
        {"rules": [{"rule": "determines(course; points)"}, {"rule": "points >= earned"}]},
    ],
)
def test_an_inequality_of_a_column_leaves_an_exact_dependency_alone(rules: dict[str, Any]) -> None:
    model = Synthesizer.fit(
        points(1_200, 0), schema=rules, preset="fast", settings={"max_steps": 10}, seed=0
    )
    assert "course determines points" in map(str, model.schema.rules or ())
    drawn = model.sample(600, seed=1)
    known = points(1_200, 0).groupby("course")["points"].first()
    assert (drawn["course"].map(known) == drawn["points"]).all()
    assert (drawn["points"] >= drawn["earned"]).mean() >= 0.99


def test_a_cell_that_is_no_level_of_a_computed_column_is_an_unknown_level() -> None:
    random = np.random.default_rng(0)
    day = pd.to_datetime("2024-01-01") + pd.to_timedelta(random.integers(0, 360, 400), "D")
    table = pd.DataFrame({"day": day, "month": day.month, "x": random.normal(size=400)})
    settings = {"max_steps": 10}
    model = Synthesizer.fit(table, preset="fast", settings=settings, seed=1, progress=False)
    assert [str(rule) for rule in model.schema.rules or ()] == ["month == month(day)"]
    for known in ({}, {"day": ["2024-01-05"] * 5}):
        for unknown in (1.9, "January", 13):
            cells = pd.DataFrame({"month": [1, unknown, 2, 1, 1], **known})
            scores = model.log_likelihood(cells)["log_likelihood"]
            assert scores[1] == -np.inf
            assert np.isfinite(scores[0])
            assert model.impute(cells)["month"].tolist() == [1, unknown, 2, 1, 1]
            with refuses(ConditionError, column="month"):
                model.sample(given_rows=cells)


def test_text_in_a_column_of_a_sum_is_an_unknown_level() -> None:
    random = np.random.default_rng(0)
    grades = random.integers(1, 6, (400, 2))
    table = pd.DataFrame({"oral": grades[:, 0], "written": grades[:, 1], "sum": grades.sum(axis=1)})
    rules = {"rules": [{"rule": "sum == oral + written"}]}
    settings = {"max_steps": 10}
    model = Synthesizer.fit(table, schema=rules, preset="fast", settings=settings, progress=False)
    cells = pd.DataFrame({"oral": ["1", "good", "2.5"], "written": 2, "sum": ["3", "4", "4"]})
    scores = model.log_likelihood(cells)["log_likelihood"]
    assert np.isfinite(scores).tolist() == [True, False, False]
    blank = cells.assign(sum=None)
    assert model.impute(blank)["oral"].tolist() == ["1", "good", "2.5"]
