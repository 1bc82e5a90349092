"""Levels that few rows have: not in a model, and yet possible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from gcvae import Synthesizer, TableReader, read_table
from gcvae.codec.rare_levels import OTHER
from gcvae.errors import ConditionError
from gcvae.training.preparation import PreparedTable, prepared_table
from gcvae.training.settings import configure
from tests.wordings import refuses

SETTINGS = {"max_steps": 20, "evaluate_every_steps": 10, "d_hidden": 16, "d_sum": 8, "d_column": 6}
DETERMINES = {"rule": "determines(city; страна)"}


def table(n: int = 600) -> pd.DataFrame:
    """Cities that fix their country; one row in 20 is of a village of its own, and all have a note
    of their own."""
    random = np.random.default_rng(0)
    city = random.integers(0, 6, n)
    names = np.array([f"town {c}" for c in city], dtype=object)
    is_rare = np.arange(n) % 20 == 0
    names[is_rare] = [f"village {i}" for i in np.flatnonzero(is_rare)]
    return pd.DataFrame(
        {
            "city": names,
            "страна": [f"land {c % 3}" for c in city],
            "note": [f"{i} times" for i in range(n)],
            "zone": np.where(np.arange(n) < 3, 7, city),
            "size": random.normal(size=n).round(2),
            "town": names,
        }
    )


NOTE = {"name": "note", "kind": "categorical"}
ZONE = {"name": "zone", "kind": "categorical"}


def prepared(rows: Any, *columns: dict[str, Any], **more: Any) -> PreparedTable:
    settings = {"rare_level_rows": 1} if more.pop("keeps_all", False) else {}
    given = {"columns": [NOTE, ZONE, *columns], **more}
    with prepared_table(rows, given, configure("fast", settings)) as found:
        found.learned["city"]  # a file's columns go with the block
        return found


@pytest.mark.parametrize("n", [8, 24])
def test_numbers_of_a_small_table_do_not_come_out_as_they_are(n: int, tmp_path: Path) -> None:
    random = np.random.default_rng(n)
    rows = pd.DataFrame(
        {
            "salary": random.normal(45_000, 8_000, n).round().astype(int),
            "score": random.normal(size=n).round(3),
            "team": random.choice(["red", "blue"], n),
        }
    )
    model = Synthesizer.fit(rows, settings=SETTINGS, seed=1)
    model.save(tmp_path / "m.gcvae")
    for drawn in (model.sample(400, seed=2), Synthesizer.load(tmp_path / "m.gcvae").sample(400)):
        assert drawn["salary"].isin(rows["salary"]).mean() < 0.05
        assert drawn["score"].isin(rows["score"]).mean() < 0.05
    text = model.to_bytes().decode("latin-1")
    assert not any(f"{salary}" in text for salary in rows["salary"])


def test_no_level_of_the_model_has_fewer_rows_and_the_table_stays_as_it_is() -> None:
    rows = table()
    found = prepared(rows, rules=[DETERMINES])
    assert found.schema["city"].levels == tuple(f"town {c}" for c in range(6))
    assert found.schema["note"].levels == (OTHER,)
    assert found.schema["zone"].levels == (0, 1, 2, 3, 4, 5, 7)  # numbers stay
    assert "village" not in str(found.schema.to_json()) + str(found.codec.to_json())
    assert list(found.typed["city"]) == list(rows["city"])
    assert found.record["rows_of_withheld_levels"] == {"city": 30, "note": 600, "town": 30}
    assert [OTHER in note for note in found.notes if "rare_level_rows" in note] == [True]


def test_what_takes_a_rare_levels_place_fixes_the_same_and_is_the_same_in_a_copy() -> None:
    found = prepared(table(), rules=[DETERMINES])
    learned = pd.DataFrame({name: found.learned[name] for name in ("city", "страна", "town")})
    assert learned.groupby("city")["страна"].nunique().max() == 1
    assert found.codec.copies == {"town": "city"}


@settings(max_examples=12, derandomize=True, phases=[Phase.generate])
@given(
    levels=st.lists(st.tuples(st.integers(1, 30), st.integers(0, 2)), min_size=10, max_size=60),
    is_fixing=st.booleans(),
)
def test_rows_of_rare_levels_are_shared_out_by_the_shares_of_those_that_fix_the_same(
    levels: list[tuple[int, int]], is_fixing: bool
) -> None:
    rare = [sum(n for n, land in levels if land == of and n < 5) for of in range(3)]
    levels = levels + [(5 + rare[land], land) for land in range(3)]  # most rows are of no rare one
    names = np.repeat([f"town {i}" for i in range(len(levels))], [n for n, _ in levels])
    land_of = np.array([f"land {land}" for _, land in levels])
    rows = pd.DataFrame({"city": names, "x": np.random.default_rng(0).normal(size=len(names))})
    if is_fixing:
        rows["страна"] = np.repeat(land_of, [n for n, _ in levels])
    schema = {"columns": [{"name": "city", "kind": "categorical"}]}
    with prepared_table(
        rows, schema | {"rules": [DETERMINES] if is_fixing else []}, configure("fast")
    ) as found:
        learned = found.learned["city"]
    town = pd.DataFrame({"rows": rows["city"].value_counts()})
    town["of"] = land_of[town.index.str[5:].astype(int)] if is_fixing else "all"
    kept = town[town["rows"] >= 5]
    rise = town.groupby("of")["rows"].sum() / kept.groupby("of")["rows"].sum()
    wanted = kept["rows"] * kept["of"].map(rise)
    assert (learned.value_counts().reindex(kept.index) - wanted).abs().max() <= 1.0
    assert learned.isin(kept.index).all()


def test_a_column_of_many_levels_keeps_their_shares() -> None:
    """Of 300 suppliers, of whom some two fifths are rare, each in one of six regions."""
    random = np.random.default_rng(0)
    shares = 1.0 / np.arange(5, 305)
    supplier = random.choice(300, 3000, p=shares / shares.sum())
    rows = pd.DataFrame(
        {
            "supplier": [f"c{i:03d}" for i in supplier],
            "region": [f"r{i}" for i in random.integers(0, 6, 300)[supplier]],
            "amount": random.normal(size=3000).round(2),
        }
    )
    rule = {"rule": "determines(supplier; region)"}
    fitted = Synthesizer.fit(rows, schema={"rules": [rule]}, settings=SETTINGS, seed=0)
    drawn = Synthesizer.from_bytes(fitted.to_bytes()).sample(3000, seed=0)
    counts = rows["supplier"].value_counts()
    table = rows["supplier"][rows["supplier"].map(counts) >= 5]
    assert 50 < len(table) < 2900
    again = [table.sample(3000, replace=True, random_state=i) for i in range(8)]
    floor = np.mean([total_variation(table, other) for other in again])
    assert total_variation(table, drawn["supplier"]) <= 1.2 * floor
    assert set(drawn["supplier"]) <= set(table)


def total_variation(one: Any, other: Any) -> float:
    """Half of the sum of the differences between shares of levels."""
    shares = (one.value_counts(normalize=True), other.value_counts(normalize=True))
    return float(shares[0].sub(shares[1], fill_value=0.0).abs().sum() / 2)


@pytest.mark.parametrize("way", ["declared", "condition", "combinations", "dependency", "setting"])
def test_levels_that_someone_has_named_stay(way: str) -> None:
    rows, more = table(), {}
    column: dict[str, Any] = {"name": "city"}
    if way == "declared":
        column["levels"] = sorted(set(rows["city"]))
    elif way == "condition":
        more["find_rules"] = True
        more["rules"] = [{"rule": "city != 'village 20' or size < 99", "keep": "hard"}]
    elif way == "combinations":
        more["rules"] = [{"rule": "combinations(city, страна)", "keep": "hard"}]
    elif way == "dependency":
        more["rules"] = [DETERMINES | {"keep": "hard"}]
    else:
        more["keeps_all"] = True
    levels = prepared(rows, column, **more).schema["city"].levels or ()
    assert "village 20" in levels
    assert ("village 40" in levels) == (way != "condition")


def test_a_file_is_learned_as_its_table_is(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    table().to_csv(path, index=False)
    given = {"columns": [NOTE, ZONE]}
    with (
        prepared_table(TableReader(path), given, configure("fast")) as of_file,
        prepared_table(read_table(path), given, configure("fast")) as of_frame,
    ):
        assert of_file.codec == of_frame.codec
        assert (of_file.rows.codes == of_frame.rows.codes).all()
        assert list(of_file.learned["city"]) == list(of_frame.learned["city"])


@pytest.fixture(scope="module")
def model() -> Synthesizer:
    fitted = Synthesizer.fit(
        table(), schema={"columns": [NOTE, ZONE], "rules": [DETERMINES]}, settings=SETTINGS, seed=1
    )
    return Synthesizer.from_bytes(fitted.to_bytes())


def test_no_rare_level_comes_out(model: Synthesizer) -> None:
    assert b"village" not in model.to_bytes()
    assert b" times" not in model.to_bytes()
    assert set(model.sample(600, seed=1)["city"]) <= {f"town {c}" for c in range(6)}


def test_a_text_that_is_no_level_has_the_mass_of_all_withheld_ones(model: Synthesizer) -> None:
    rows = table().head(1)[["city", "note", "zone", "town"]].assign(size=None, страна=None)
    names = [*(f"town {c}" for c in range(6)), "village 20"]
    every = pd.concat([rows.assign(city=name, town=name) for name in names], ignore_index=True)
    one = every.assign(city=None, town=None)
    scores, whole = (
        model.log_likelihood(x, draws=60, seed=3)["log_likelihood"].to_numpy() for x in (every, one)
    )
    shares = np.exp(scores - whole)
    assert shares[-1] == pytest.approx(30 / 600, rel=1e-6)
    assert np.isfinite(scores).all()
    unheard = model.log_likelihood(every.assign(city="x", town="x"), draws=60, seed=3)
    assert unheard["log_likelihood"].iloc[-1] == scores[-1]


def test_a_rare_level_that_is_known_says_nothing_and_is_no_condition(model: Synthesizer) -> None:
    rows = table().head(3).assign(size=None)
    filled = model.impute(rows, seed=2)
    assert list(filled["city"]) == list(rows["city"])
    assert filled["size"].notna().all()
    with refuses(ConditionError, column="city"):
        model.sample(given_rows=rows[["city", "zone"]], seed=2)
    with refuses(ConditionError, "/given/city"):
        model.sample(3, given={"city": "village 20"})
    with refuses(ConditionError, "/given/note") as refused:
        model.sample(3, given={"note": "a note of nobody"})
    assert refused.value.problems[0].suggestion == OTHER
    assert set(model.sample(3, given={"note": OTHER})["note"]) == {OTHER}


@pytest.mark.parametrize(("form", "n_codes"), [("{:05d}", 120), ("{:d}", 5)])
def test_digits_with_leading_zeros_keep_the_levels_that_words_keep(
    form: str, n_codes: int, tmp_path: Path
) -> None:
    random = np.random.default_rng(0)
    which = (n_codes * random.random(600) ** 1.5).astype(int)
    numbers = [3, *random.choice(90_000, n_codes - 1, replace=False)]
    frame = pd.DataFrame({"PLZ": [form.format(numbers[i]) for i in which], "x": which % 7})
    frame["word"] = "w" + frame["PLZ"]
    if form == "{:d}":  # one code with a zero before it makes all of them text
        frame.loc[frame["PLZ"] == "3", "PLZ"] = "003"
    counts = frame["PLZ"].value_counts()
    frame.to_csv(tmp_path / "t.csv", index=False)
    settings = SETTINGS | {"max_steps": 2, "evaluate_every_steps": 2}
    for rows in (frame, TableReader(tmp_path / "t.csv")):
        Synthesizer.fit(rows, seed=0, settings=settings).save(tmp_path / "m.gcvae")
        model = Synthesizer.load(tmp_path / "m.gcvae")
        levels = model.schema["PLZ"].levels
        assert set(levels or ()) == set(counts.index[counts >= 5])
        assert len(levels or ()) == len(model.schema["word"].levels or ())
        assert set(model.sample(200, 1)["PLZ"]) <= set(levels or ())


def sales(n: int = 1_500, n_products: int = 300) -> pd.DataFrame:
    """Sales of products, many of them rare, which determine category, tax rate and price."""
    random = np.random.default_rng(1)
    category = random.integers(0, 4, n_products)
    products = pd.DataFrame(
        {
            "sku": [f"{'ABCD'[c]}-{i:03d}" for i, c in enumerate(category)],
            "category": np.array(["toys", "food", "books", "garden"])[category],
            "tax_rate": np.array([0.19, 0.07, 0.07, 0.19])[category],
            "price": (np.exp(random.normal(3, 1, n_products))).round(2),
        }
    )
    popularity = 1 / np.arange(1, n_products + 1)
    of = random.choice(n_products, n, p=popularity / popularity.sum())
    frame = products.iloc[of].reset_index(drop=True)
    frame["quantity"] = random.geometric(0.4, n)
    frame["net"] = (frame["quantity"] * frame["price"]).round(2)
    return frame


@pytest.mark.parametrize("in_file", [False, True])
def test_what_a_rare_product_determines_follows_its_replacement(
    in_file: bool, tmp_path: Path
) -> None:
    frame: Any = sales()
    of_products = frame.drop_duplicates("sku").set_index("sku")
    if in_file:
        frame.to_csv(tmp_path / "sales.csv", index=False)
        frame = TableReader(tmp_path / "sales.csv")
    with prepared_table(frame, None, configure("fast", SETTINGS)) as found:
        learned = pd.DataFrame({name: found.learned[name] for name in of_products.columns})
        learned["sku"] = found.learned["sku"]
        replaced = (learned["sku"] != found.typed["sku"]).mean()
    assert replaced > 0.1
    for name in ("category", "tax_rate", "price"):
        assert (learned["sku"].map(of_products[name]) == learned[name]).all(), name
    assert ((learned["quantity"] * learned["price"]).round(2) - learned["net"]).abs().max() < 0.011


def test_drawn_products_have_their_own_category_and_price() -> None:
    frame = sales()
    model = Synthesizer.fit(frame, preset="fast", settings=SETTINGS, seed=0)
    drawn = model.sample(2_000, seed=1)
    of_products = frame.drop_duplicates("sku").set_index("sku")
    for name in ("category", "tax_rate", "price"):
        assert (drawn["sku"].map(of_products[name]) == drawn[name]).all(), name
    toys = model.sample(200, given={"category": "toys", "tax_rate": 0.19}, seed=2)
    assert set(toys["category"]) == {"toys"}
    assert (toys["sku"].str[0] == "A").all()


def test_whole_numbers_that_mostly_rare_products_determine_are_learned() -> None:
    random = np.random.default_rng(0)
    of = np.r_[random.integers(0, 40, 200), np.repeat(np.arange(40, 240), 2)]
    weights = random.integers(1, 900, 240)
    frame = pd.DataFrame({"sku": [f"P{i:03d}" for i in of], "grams": weights[of]})
    frame["x"] = random.normal(size=600).round(2)
    rule = {"rule": "determines(sku; grams)", "keep": "soft"}
    model = Synthesizer.fit(frame, schema={"rules": [rule]}, preset="fast", settings=SETTINGS)
    drawn = model.sample(100, seed=1)
    assert drawn["grams"].between(1, 900).all()
    assert OTHER in set(drawn["sku"])
