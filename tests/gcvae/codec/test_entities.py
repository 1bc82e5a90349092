"""Rows with the same recurring key, such as the orders of a customer, agree in what it determines;
keys are new, and conditions and hard rules hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from anyascii import anyascii
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from gcvae import Synthesizer, infer_schema
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.entities import Entities
from gcvae.evaluation.report.replay import replayed
from gcvae.sampling.samplers import SAMPLE_BLOCK_ROWS
from tests.lengths import tries

HARDLY = {"max_steps": 5, "evaluate_every_steps": 5}
DAY = np.timedelta64(1, "D")
OF_CUSTOMER = ["name", "city", "segment", "born"]


def ages(rows: pd.DataFrame) -> pd.Series[int]:
    born, ordered = rows["born"].dt, rows["ordered"].dt
    had_birthday = 100 * ordered.month + ordered.day >= 100 * born.month + born.day
    return ordered.year - born.year - ~had_birthday


def orders(n: int = 1_000, n_customers: int = 200, seed: int = 0) -> pd.DataFrame:
    """Orders of customers; a customer's age on the day of an order follows from both."""
    random = np.random.default_rng(seed)
    births = random.integers(0, 18_000, n_customers) * DAY
    customers = pd.DataFrame(
        {
            "customer_id": [f"C-{i:05d}" for i in range(n_customers)],
            "name": random.choice(["Ann Lee", "Bob Ray", "Cy Poe", "Di Fox"], n_customers),
            "city": random.choice(["Bonn", "Köln", "Rom"], n_customers, p=[0.6, 0.3, 0.1]),
            "segment": random.choice(["retail", "business"], n_customers),
            "born": np.datetime64("1950-01-01", "s") + births,
        }
    )
    frame = customers.iloc[random.integers(0, n_customers, n)].reset_index(drop=True)
    frame["ordered"] = np.datetime64("2024-01-01", "s") + random.integers(0, 366, n) * DAY
    frame["age"] = ages(frame)
    frame["amount"] = random.gamma(2.0, 20.0, n).round(2)
    return frame


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return orders()


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> Synthesizer:
    return fitted(frame)


def fitted(frame: pd.DataFrame, schema: dict[str, Any] | None = None) -> Synthesizer:
    return Synthesizer.fit(frame, schema=schema, preset="fast", settings=HARDLY, seed=0)


def agree(rows: pd.DataFrame, columns: list[str] = OF_CUSTOMER) -> bool:
    """Returns whether all rows of each customer have the same cells."""
    return bool((rows.groupby("customer_id")[columns].nunique(dropna=False) == 1).all(axis=None))


def test_rows_of_a_customer_agree_in_every_block_and_no_customer_is_an_original(
    frame: pd.DataFrame, model: Synthesizer
) -> None:
    drawn = model.sample(2 * SAMPLE_BLOCK_ROWS + 100, seed=1)
    assert agree(drawn)
    assert not set(drawn["customer_id"]) & set(frame["customer_id"])
    blocks = drawn["customer_id"].groupby(drawn.index // SAMPLE_BLOCK_ROWS)
    keys = [set(block) for _, block in blocks]
    assert not keys[0] & keys[1], "a customer has all orders in one block"
    sizes = [rows["customer_id"].value_counts() for rows in (frame, drawn)]
    assert ks_2samp(*sizes).statistic < 0.08
    shares = [rows["city"].value_counts(normalize=True)["Bonn"] for rows in (frame, drawn)]
    assert abs(shares[0] - shares[1]) < 0.15  # hardly trained


def test_a_missing_cell_of_a_customer_is_that_of_another_order(
    frame: pd.DataFrame, model: Synthesizer
) -> None:
    first = frame.drop_duplicates("customer_id").index
    gaps = frame.astype({"city": object})
    gaps.loc[first, ["city", "born"]] = [None, pd.NaT]
    filled = model.impute(gaps, seed=1)
    comes_again = frame["customer_id"].isin(frame.drop(first)["customer_id"])
    again = frame[comes_again]
    assert (filled["city"].notna() & filled["born"].notna()).all()
    pd.testing.assert_frame_equal(
        filled.loc[again.index, ["city", "born"]], again[["city", "born"]], check_dtype=False
    )


def test_the_model_is_the_same_after_save_and_load(model: Synthesizer) -> None:
    loaded = Synthesizer.from_bytes(model.to_bytes())
    pd.testing.assert_frame_equal(loaded.sample(500, seed=2), model.sample(500, seed=2))


def test_rules_between_a_customer_and_an_order_hold(model: Synthesizer) -> None:
    drawn = model.sample(3_000, seed=3)
    assert (ages(drawn) == drawn["age"]).all()


@pytest.mark.parametrize(
    "given_cells", [{"city": "Rom"}, {"age": {"min": 40, "max": 45}}, {"amount": {"max": 30}}]
)
def test_conditions_hold_for_entities(model: Synthesizer, given_cells: dict[str, object]) -> None:
    drawn = model.sample(300, given=given_cells, seed=4)
    assert agree(drawn)
    [(name, wanted)] = given_cells.items()
    if isinstance(wanted, dict):
        assert drawn[name].between(wanted.get("min", -np.inf), wanted["max"]).all()
    else:
        assert (drawn[name] == wanted).all()


def test_shares_of_levels_hold_for_entities(model: Synthesizer) -> None:
    drawn = model.sample(1_000, distribution={"city": {"Rom": 0.5, "Bonn": 0.5}}, seed=5)
    assert agree(drawn)
    assert abs((drawn["city"] == "Rom").mean() - 0.5) < 0.1


def test_a_hard_rule_between_a_customer_and_an_order_holds(frame: pd.DataFrame) -> None:
    kept = frame[(frame["segment"] == "business") | (frame["amount"] < 60)]
    rule = {"rule": "segment == 'business' or amount < 60", "keep": "hard"}
    schema = {"rules": [rule], "find_rules": True}
    drawn = fitted(kept, schema).sample(2_000, seed=1)
    assert agree(drawn)
    assert drawn["customer_id"].nunique() < 1_950, "customers come again"
    assert ((drawn["segment"] == "business") | (drawn["amount"] < 60)).all()


def test_customers_come_again_if_a_hard_rule_binds_their_only_column(frame: pd.DataFrame) -> None:
    kept = frame[(frame["segment"] == "business") | (frame["amount"] < 60)]
    rule = {"rule": "segment == 'business' or amount < 60", "keep": "hard"}
    kept = kept[["customer_id", "segment", "amount", "ordered"]]
    drawn = fitted(kept, {"rules": [rule], "find_rules": True}).sample(2_000, seed=1)
    assert agree(drawn, ["segment"])
    sizes = [rows["customer_id"].value_counts() for rows in (kept, drawn)]
    assert ks_2samp(*sizes).statistic < 0.08


@pytest.mark.parametrize("name", ["kundennummer", "客户编号", "CustomerID"])
def test_keys_of_any_form_are_found_in_columns_of_any_order(frame: pd.DataFrame, name: str) -> None:
    numbers = frame["customer_id"].str[2:].astype(int) + 70_000
    table = frame.assign(customer_id=numbers).rename(columns={"customer_id": name})
    table = table[table.columns[::-1]].set_index(np.arange(len(table)) * 3 + 5)
    schema = infer_schema(table).schema
    assert schema[name].kind == "identifier"
    determined = {rule.column for rule in schema.rules or () if rule.parents == (name,)}
    assert determined == set(OF_CUSTOMER)


def test_a_key_of_kind_categorical_keeps_its_values(frame: pd.DataFrame) -> None:
    schema = {"columns": [{"name": "customer_id", "kind": "categorical"}]}
    drawn = fitted(frame, schema).sample(200, seed=1)
    assert set(drawn["customer_id"]) <= set(frame["customer_id"])


def test_a_dependency_that_is_off_leaves_its_column_to_the_rows(frame: pd.DataFrame) -> None:
    schema = infer_schema(frame).schema.to_json()
    for rule in schema["rules"]:
        if rule["rule"] == "determines(customer_id; city)":
            rule["keep"] = "off"
    drawn = fitted(frame, schema).sample(2_000, seed=1)
    assert agree(drawn, ["segment", "born"])
    assert not agree(drawn, ["city"])


def test_an_amount_that_determines_others_is_no_key() -> None:
    random = np.random.default_rng(0)
    amount = random.gamma(2.0, 50.0, 2_000).round()
    for name, unit in (("Acompte", 0.5), ("account", 1.0), ("order", 1.0)):
        frame = pd.DataFrame({name: unit * amount, "total": amount * 3, "tax": amount * 0.2})
        frame["city"] = random.choice(["Bonn", "Rom"], 2_000)
        assert infer_schema(frame).schema[name].kind != "identifier", name


def test_a_postal_code_is_no_key_of_entities() -> None:
    random = np.random.default_rng(0)
    place = random.integers(0, 300, 1_500)
    frame = pd.DataFrame({"zip_code": [f"D-{10_000 + p}" for p in place]})
    frame["city"], frame["state"] = [f"town {p % 40}" for p in place], [f"s{p % 8}" for p in place]
    frame["amount"] = random.gamma(2.0, 50.0, 1_500).round(2)
    assert infer_schema(frame).schema["zip_code"].kind == "categorical"


def test_a_few_frequent_keys_are_categories(frame: pd.DataFrame) -> None:
    stores = orders(n_customers=30).drop(columns="name").rename(columns={"customer_id": "store_id"})
    assert infer_schema(stores).schema["store_id"].kind == "categorical"
    named = orders(n_customers=30)
    assert infer_schema(named).schema["customer_id"].kind == "identifier", "a person's number"


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=20),
    st.integers(0, 300),
    st.integers(0, 2),
    st.sampled_from(["equal", "near"]),
)
@tries(50)
def test_rows_of_a_group_get_cells_of_one_of_them(
    sizes: list[int], n: int, n_bound: int, grouping: str
) -> None:
    random = np.random.default_rng(n)
    codes = torch.from_numpy(random.integers(0, 3, (n, 4)).astype(np.int32))
    values = torch.from_numpy(random.normal(size=(n, 4)).round(1))
    rows = EncodedTable(codes, values, torch.ones((n, 4), dtype=torch.bool))
    entities = Entities("key", ("a", "b"), tuple(sorted(sizes)))
    found, numbers = entities.grouped(rows, [0, 2], n_bound, grouping, ["seed"])  # type: ignore[arg-type]
    again, _ = entities.grouped(rows, [0, 2], n_bound, grouping, ["seed"])  # type: ignore[arg-type]
    assert torch.equal(found.codes, again.codes)
    assert torch.equal(found.codes[:, [1, 3]], codes[:, [1, 3]]), "other columns stay"
    before = set(map(tuple, torch.cat([codes, values], 1)[:, [0, 2, 4, 6]].tolist()))
    for number in np.unique(numbers):
        own = np.flatnonzero(numbers == number)
        cells = torch.cat([found.codes, found.values], 1)[own][:, [0, 2, 4, 6]]
        assert len(own) <= max(sizes)
        assert (cells == cells[0]).all()
        assert tuple(cells[0].tolist()) in before
        if grouping == "equal":
            assert torch.equal(found.values[own], values[own])
        assert (codes[own] == codes[own][0])[:, [0, 2][:n_bound]].all()


def test_a_name_is_no_key_and_the_cells_of_a_person_fit_each_other() -> None:
    random = np.random.default_rng(0)
    of_country = {"DE": ["Anna", "Heike", "Uwe"], "CH": ["Urs", "Reto", "Beat"]}
    country = random.choice(["DE", "CH"], 400)
    first = [random.choice(of_country[place]) for place in country]
    last = random.choice(["Weber", "Koch", "Berger", "Roth"], 400)
    frame = pd.DataFrame({"first_name": first, "last_name": last, "country": country})
    frame["currency"] = frame["country"].map({"DE": "EUR", "CH": "CHF"})
    frame["email"] = [
        f"{a}.{b}{i}@web.de".lower() for i, (a, b) in enumerate(zip(first, last, strict=True))
    ]
    frame["amount"] = random.gamma(2.0, 20.0, 400).round(2)
    model = fitted(frame)
    assert not any({"first_name", "last_name"} & {*r.parents} for r in model.schema.rules or ())
    drawn = model.sample(200, seed=1)
    letters = [anyascii(name[0]).lower() for name in drawn["first_name"]]
    assert all(map(str.startswith, drawn["email"], letters))


def visits(name: str = "patient_id", n_keys: int = 250, n: int = 800) -> pd.DataFrame:
    """Rows with a key that determines nothing."""
    random = np.random.default_rng(0)
    keys = random.choice(n_keys, n, p=random.dirichlet(np.ones(n_keys)))
    frame = pd.DataFrame({name: [f"P-{7 * key + 10_000}" for key in keys]})
    frame["ward"] = random.choice(["A", "B", "C"], n)
    frame["costs"] = random.gamma(2.0, 50.0, n).round(2)
    return frame


@pytest.mark.parametrize("name", ["patient_id", "Kundennummer", "numéro_de_client", "客户编号"])
def test_the_number_of_a_person_is_new_and_recurs_even_if_it_determines_nothing(name: str) -> None:
    frame = visits(name)
    inferred = infer_schema(frame)
    assert inferred.schema[name].kind == "identifier"
    assert any(
        note.startswith(f"column {name!r}: recurs and is named") for note in inferred.warnings
    )
    model = Synthesizer.from_bytes(fitted(frame).to_bytes())
    drawn = model.sample(1_000, seed=1)
    assert not set(drawn[name]) & set(frame[name])
    assert drawn[name].str.fullmatch(r"P-\d{5}").all()
    sizes = [rows[name].value_counts() for rows in (frame, drawn)]
    assert ks_2samp(*sizes).statistic < 0.08


@pytest.mark.parametrize("name", ["product_id", "zip_code", "order_type_id", "store_no"])
def test_a_number_of_something_else_stays_a_category(name: str) -> None:
    assert infer_schema(visits(name)).schema[name].kind == "categorical"


def test_amounts_and_dates_called_like_a_case_are_no_keys() -> None:
    random = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + random.integers(0, 300, 800) * DAY
    frame = pd.DataFrame({"booking": days.astype(str), "claim": random.integers(5, 700, 800)})
    frame["order"] = [f"{price:.2f} EUR" for price in random.integers(1, 300, 800) / 4]
    kinds = [column.kind.value for column in infer_schema(frame).schema]
    assert kinds == ["datetime", "integer", "continuous"]


def test_a_key_that_is_declared_a_category_is_replayed() -> None:
    frame = visits(n_keys=40)
    column = {"name": "patient_id", "kind": "categorical"}
    model = fitted(frame, {"columns": [column]})
    assert any("synthetic rows contain real ones" in note for note in model.table_notes)
    found = replayed(model.schema, frame, model.sample(300, seed=1), rare_rows=5, with_levels=True)
    assert found.personal["patient_id"] > 200
    said = fitted(frame, {"columns": [column | {"personal": False}]})
    assert not any("synthetic rows contain" in note for note in said.table_notes)
    drawn = said.sample(300, seed=1)
    assert replayed(said.schema, frame, drawn, rare_rows=5, with_levels=True).count == 0
