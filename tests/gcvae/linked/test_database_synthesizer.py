"""Databases drawn anew: keys, references, counts, totals, copies, orders and entities."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import DatabaseSynthesizer, Synthesizer
from gcvae.errors import ArtifactError, SchemaError, SettingError, TableError
from gcvae.linked.database_draw import RepeatedRowsWarning
from gcvae.linked.database_fit import completed_schema
from tests.gcvae.linked.shop import KEYS, shop

QUICK: dict[str, Any] = {"preset": "fast", "settings": {"max_steps": 2}, "device": "cpu"}


@pytest.fixture(scope="module")
def model() -> DatabaseSynthesizer:
    """A model of the shop."""
    longer = {**QUICK, "settings": {"max_steps": 80}}
    return DatabaseSynthesizer.fit(shop(), schema=KEYS, seed=1, **longer)


@pytest.fixture(scope="module")
def loaded(model: DatabaseSynthesizer, tmp_path_factory: Any) -> DatabaseSynthesizer:
    """The model from its file."""
    path = tmp_path_factory.mktemp("models") / "shop.gcvae"
    model.save(path)
    return DatabaseSynthesizer.load(path)


@pytest.fixture(scope="module")
def drawn(model: DatabaseSynthesizer) -> dict[str, pd.DataFrame]:
    """A database of it."""
    return model.sample(seed=2)


def test_tables_have_the_columns_and_dtypes_of_the_real_ones(
    drawn: dict[str, pd.DataFrame],
) -> None:
    real = shop()
    assert list(drawn) == list(real)
    for name, frame in drawn.items():
        assert list(frame.columns) == list(real[name].columns)
        assert frame["price"].dtype == real[name]["price"].dtype if "price" in frame else True
    assert drawn["orders"]["ordered"].dtype == real["orders"]["ordered"].dtype
    assert abs(len(drawn["orders"]) / len(real["orders"]) - 1) < 0.35


def test_every_key_is_unique_and_every_reference_is_found(drawn: dict[str, pd.DataFrame]) -> None:
    assert drawn["customers"]["customer_id"].is_unique
    assert drawn["orders"]["order_id"].is_unique
    assert not drawn["lines"].duplicated(["order_id", "product_id"]).any()
    assert drawn["orders"]["customer_id"].isin(drawn["customers"]["customer_id"]).all()
    assert drawn["lines"]["order_id"].isin(drawn["orders"]["order_id"]).all()
    assert drawn["lines"]["product_id"].isin(drawn["products"]["product_id"]).all()


def test_a_reference_to_the_own_table_is_missing_as_often_and_never_to_the_row_itself(
    drawn: dict[str, pd.DataFrame],
) -> None:
    friends, ids = drawn["customers"]["friend"], drawn["customers"]["customer_id"]
    assert friends.dropna().isin(ids).all()
    assert abs(friends.isna().mean() - shop()["customers"]["friend"].isna().mean()) < 0.15
    assert not (friends == ids).any()


def test_keys_of_people_are_not_those_of_the_table(drawn: dict[str, pd.DataFrame]) -> None:
    real = shop()
    assert not drawn["customers"]["customer_id"].isin(real["customers"]["customer_id"]).any()


def test_a_catalogue_is_copied_as_it_is(
    model: DatabaseSynthesizer, drawn: dict[str, pd.DataFrame]
) -> None:
    assert model.plans["products"] == "copied as it is"
    pd.testing.assert_frame_equal(drawn["products"], shop()["products"])


def test_columns_of_a_parent_come_back_in_its_children(drawn: dict[str, pd.DataFrame]) -> None:
    orders = drawn["orders"].merge(drawn["customers"], on="customer_id")
    assert (orders["country_x"] == orders["country_y"]).all()
    lines = drawn["lines"].merge(drawn["products"], on="product_id")
    assert (lines["price_x"] == lines["price_y"]).all()


def test_a_total_adds_up_its_lines(drawn: dict[str, pd.DataFrame]) -> None:
    lines = drawn["lines"]
    sums = (lines["price"] * lines["quantity"]).groupby(lines["order_id"]).sum()
    orders = drawn["orders"].set_index("order_id")["total"]
    np.testing.assert_allclose(sums.reindex(orders.index).fillna(0.0), orders, atol=0.006)


def test_rows_of_a_parent_follow_each_other_as_they_did(drawn: dict[str, pd.DataFrame]) -> None:
    orders = drawn["orders"].sort_values(["customer_id", "ordered"])
    gaps = orders.groupby("customer_id")["ordered"].diff().dropna().dt.days
    assert set(gaps) == {7, 14}


def test_rules_reach_the_order_and_the_parents_row(drawn: dict[str, pd.DataFrame]) -> None:
    orders = drawn["orders"].merge(drawn["customers"], on="customer_id")
    assert (orders["shipped"] >= orders["ordered"]).all()
    assert ((orders["shipped"] - orders["ordered"]).dt.days <= 4).all()


def test_children_of_a_parent_are_alike_as_they_were(drawn: dict[str, pd.DataFrame]) -> None:
    agree = {
        name: _share_that_agree(orders["customer_id"], orders["channel"])
        for name, orders in (("real", shop()["orders"]), ("drawn", drawn["orders"]))
    }
    assert agree["real"] > 0.8
    assert agree["drawn"] > 0.65  # 0.5 for rows that are strangers to each other


def _share_that_agree(parents: pd.Series[Any], levels: pd.Series[Any]) -> float:
    """The probability that two children of a parent have one level."""
    table = pd.crosstab(parents, levels).to_numpy(float)
    n = table.sum(axis=1)
    pairs = n * (n - 1)
    return float((table * (table - 1)).sum() / pairs.sum())


def test_a_saved_model_draws_the_same(
    model: DatabaseSynthesizer, loaded: DatabaseSynthesizer, drawn: dict[str, pd.DataFrame]
) -> None:
    assert loaded.to_bytes() == model.to_bytes()
    again = loaded.sample(seed=2)
    for name, frame in drawn.items():
        pd.testing.assert_frame_equal(frame, again[name])


def test_scale_and_parents_say_how_many_rows_there_are(model: DatabaseSynthesizer) -> None:
    assert len(model.sample(scale=0.1, seed=1)["customers"]) == 12
    assert len(model.sample(7, seed=1)["customers"]) == 7
    for wrong in ({"scale": 0}, {"scale": "2"}, {"parents": 0}):
        with pytest.raises(SettingError):
            model.sample(**wrong)  # type: ignore[arg-type]


def test_a_file_of_the_other_kind_of_model_is_refused_by_what_reads_it(
    model: DatabaseSynthesizer, tmp_path: Any
) -> None:
    model.save(tmp_path / "shop.gcvae")
    with pytest.raises(ArtifactError, match=r"shop.gcvae: .* DatabaseSynthesizer\.load"):
        Synthesizer.load(tmp_path / "shop.gcvae")
    Synthesizer.fit(shop()["orders"], **QUICK).save(tmp_path / "orders.gcvae")
    with pytest.raises(ArtifactError, match=r"orders.gcvae: .* Synthesizer\.load"):
        DatabaseSynthesizer.load(tmp_path / "orders.gcvae")


def test_the_schema_has_the_orders_and_catalogues_that_were_found(
    model: DatabaseSynthesizer,
) -> None:
    tables = model.schema.to_json()["tables"]
    assert (tables["orders"]["order"], tables["products"]["keep"]) == ("ordered", True)
    links, _ = completed_schema(shop(), KEYS)
    assert links == model.schema


def test_files_without_rows_are_tables(tmp_path: Any) -> None:
    _PARENTS.to_csv(tmp_path / "parents.csv", index=False)
    _CHILDREN.head(0).to_csv(tmp_path / "children.csv", index=False)
    _CHILDREN.head(0).to_parquet(tmp_path / "notes.parquet")
    names = ("parents.csv", "children.csv", "notes.parquet")
    tables = {name.partition(".")[0]: tmp_path / name for name in names}
    drawn = DatabaseSynthesizer.fit(tables, **QUICK).sample(seed=1)
    sizes = {name: frame.shape for name, frame in drawn.items()}
    assert sizes == {"parents": (100, 2), "children": (0, 2), "notes": (0, 2)}


def test_a_model_file_of_something_else_is_refused(tmp_path: Any) -> None:
    path = tmp_path / "x.gcvae"
    path.write_bytes(b"no model")
    with pytest.raises(ArtifactError):
        DatabaseSynthesizer.load(path)


def test_dirty_references_are_refused_with_the_first_ones_dropped_or_emptied() -> None:
    tables = shop(40)
    tables["orders"].loc[:2, "customer_id"] = ["X1", "X2", "X3"]
    with pytest.raises(TableError, match="X1; X2; X3") as caught:
        DatabaseSynthesizer.fit(tables, schema=KEYS, **QUICK)
    pointers = [problem.pointer for problem in caught.value.problems]
    assert pointers == ["/tables/orders/foreign_keys/0"]


def test_a_key_that_comes_again_is_refused() -> None:
    tables = shop(40)
    tables["products"].loc[1, "product_id"] = 1
    schema = {"tables": {"products": {"primary_key": ["product_id"]}}}
    with pytest.raises(TableError, match="comes again: 1") as caught:
        DatabaseSynthesizer.fit(tables, schema=schema, **QUICK)
    assert caught.value.problems[0].pointer == "/tables/products/primary_key"


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"tables": []}, "/tables"),
        ({"tables": {"costumers": {}}}, "/tables/costumers"),
        ({"tables": {"orders": {"primarykey": ["order_id"]}}}, "/tables/orders/primarykey"),
        ({"tables": {"orders": {"primary_key": ["id"]}}}, "/tables/orders/primary_key/0"),
        ({"tables": {"orders": {"order": "date"}}}, "/tables/orders/order"),
        (
            {"tables": {"orders": {"foreign_keys": [{"columns": ["x"], "table": "customers"}]}}},
            "/tables/orders/foreign_keys/0/columns/0",
        ),
        (
            {"tables": {"orders": {"foreign_keys": [{"columns": ["x"], "table": "y"}]}}},
            "/tables/orders/foreign_keys/0/table",
        ),
    ],
)
def test_a_wrong_document_is_refused_at_its_place(document: Any, pointer: str) -> None:
    with pytest.raises(SchemaError) as caught:
        DatabaseSynthesizer.fit(shop(20), schema=document, **QUICK)
    assert caught.value.problems[0].pointer == pointer


def test_an_entity_of_a_flat_table_has_one_identity() -> None:
    tables = shop(60)
    flat = tables["orders"].merge(tables["customers"][["customer_id", "joined"]], on="customer_id")
    model = DatabaseSynthesizer.fit({"orders": flat}, seed=1, **QUICK)
    [split] = model.splits
    assert (split.key, set(split.determined)) == (("customer_id",), {"country", "joined"})
    orders = model.sample(seed=2)["orders"]
    assert list(orders.columns) == list(flat.columns)
    of_customers = orders.groupby("customer_id")
    assert (of_customers["country"].nunique() == 1).all()
    assert (of_customers["joined"].nunique() == 1).all()
    assert not orders["customer_id"].isin(flat["customer_id"]).any()
    assert abs(len(of_customers) / flat["customer_id"].nunique() - 1) < 0.1
    raw = model.to_bytes()
    assert not [key for key in flat["customer_id"] if key.encode() in raw]


@pytest.mark.slow
def test_series_of_a_parent_tell_its_rows_of_a_date_apart() -> None:
    rng = np.random.default_rng(0)
    weeks = pd.date_range("2024-01-05", periods=4, freq="7D")
    rows = [
        (store, department, week)
        for store in range(25)
        for department in sorted(rng.choice(12, 8, replace=False))
        for week in weeks
    ]
    sales = pd.DataFrame(rows, columns=["store", "department", "week"])
    sales["amount"] = (10.0 * sales["department"] + rng.normal(size=len(sales))).round(2)
    stores = pd.DataFrame({"store": range(25), "size": rng.integers(10, 99, 25)})
    schema = {
        "tables": {
            "stores": {"primary_key": ["store"]},
            "sales": {"foreign_keys": [{"columns": ["store"], "table": "stores"}]},
        }
    }
    longer = {**QUICK, "settings": {"max_steps": 150}}
    model = DatabaseSynthesizer.fit({"stores": stores, "sales": sales}, schema=schema, **longer)
    assert [split.key for split in model.splits] == [("store", "department")]
    found = model.sample(seed=1)["sales"]
    assert not found.duplicated(["store", "department", "week"]).any()
    by_series = found.sort_values("week").groupby(["store", "department"])["week"]
    assert set(by_series.diff().dropna().dt.days) == {7}
    means = found.groupby("department")["amount"].mean()
    assert np.corrcoef(means.index, means)[0, 1] > 0.9


def _keyed(parents: pd.DataFrame, children: pd.DataFrame, **of_children: Any) -> Any:
    """A drawn database of two tables whose key is `pid`."""
    keys = [{"columns": ["pid"], "table": "parents"}]
    schema = {
        "tables": {
            "parents": {"primary_key": ["pid"]},
            "children": {"foreign_keys": keys, **of_children},
        }
    }
    tables = {"parents": parents, "children": children}
    return DatabaseSynthesizer.fit(tables, schema=schema, **QUICK).sample(seed=1)


_NUMBERS = np.random.default_rng(0).normal(size=300)
_PARENTS = pd.DataFrame({"pid": range(1, 101), "x": _NUMBERS[:100]})
_CHILDREN = pd.DataFrame({"pid": np.arange(300) % 97 + 1, "y": _NUMBERS})


@pytest.mark.parametrize(
    "keys",
    [
        pd.Series(pd.date_range("2020-01-01", periods=100, tz="Europe/Berlin")),
        pd.Series(np.arange(100) + 0.5),
        pd.Series(np.arange(100), dtype="Int64"),
        pd.Series([f"α-{i:03}" for i in range(100)]),
    ],
    ids=["zone", "fractions", "Int64", "text"],
)
def test_keys_of_each_type_are_unique_found_and_of_their_dtype(keys: pd.Series[Any]) -> None:
    children = _CHILDREN.assign(pid=keys.iloc[_CHILDREN["pid"]].reset_index(drop=True))
    drawn = _keyed(_PARENTS.assign(pid=keys), children)
    assert drawn["parents"]["pid"].is_unique
    assert drawn["children"]["pid"].isin(drawn["parents"]["pid"]).all()
    assert drawn["parents"]["pid"].dtype == keys.dtype


@pytest.mark.parametrize(
    "children",
    [
        _CHILDREN[["pid"]],
        _CHILDREN.assign(y=np.nan),
        _CHILDREN.assign(pid=_CHILDREN["pid"] % 3 + 1),
        _CHILDREN.head(1),
        _CHILDREN.assign(pid=np.nan),
    ],
    ids=["keys alone", "blank", "three parents", "one row", "no parents"],
)
def test_odd_children_are_drawn_in_their_number(children: pd.DataFrame) -> None:
    drawn = _keyed(_PARENTS, children)["children"]
    assert abs(len(drawn) - len(children)) <= 0.4 * len(children)


def test_lines_of_an_order_are_numbered_once_each() -> None:
    lines = _CHILDREN.sort_values("pid").assign(line=lambda f: f.groupby("pid").cumcount() + 1)
    drawn = _keyed(_PARENTS, lines.reset_index(drop=True), primary_key=["pid", "line"])["children"]
    assert not drawn.duplicated(["pid", "line"]).any()
    assert abs(len(drawn) - 300) < 100


def test_a_key_of_two_columns_comes_once_each() -> None:
    months = [(y, m, y * 0.1 + m) for y in range(2015, 2025) for m in range(1, 13)]
    table = pd.DataFrame(months, columns=["year", "month", "x"])
    schema = {"tables": {"months": {"primary_key": ["year", "month"]}}}
    drawn = DatabaseSynthesizer.fit({"months": table}, schema=schema, **QUICK).sample(seed=1)
    assert len(drawn["months"].drop_duplicates(["year", "month"])) == 120


def test_references_that_are_never_the_same_are_not() -> None:
    home = np.arange(200) % 25
    games = pd.DataFrame({"home": home, "away": (home + 1 + np.arange(200) % 7) % 25})
    games["goals"] = np.arange(200) % 6
    teams = pd.DataFrame({"id": range(25), "strength": _NUMBERS[:25]})
    keys = [{"columns": [side], "table": "teams"} for side in ("home", "away")]
    schema = {"tables": {"teams": {"primary_key": ["id"]}, "games": {"foreign_keys": keys}}}
    tables = {"teams": teams, "games": games}
    drawn = DatabaseSynthesizer.fit(tables, schema=schema, **QUICK).sample(seed=1)["games"]
    assert not (drawn["home"] == drawn["away"]).any()


@pytest.mark.parametrize("invalid_references", ["drop", "null"])
def test_a_key_of_which_no_value_is_there_is_refused_whatever_becomes_of_dirty_rows(
    invalid_references: str,
) -> None:
    keys = [{"columns": ["y"], "table": "parents"}]
    schema = {"tables": {"parents": {"primary_key": ["pid"]}, "children": {"foreign_keys": keys}}}
    tables = {"parents": _PARENTS, "children": _CHILDREN}
    with pytest.raises(SchemaError, match="no value of the key y") as caught:
        DatabaseSynthesizer.fit(
            tables, schema=schema, invalid_references=invalid_references, **QUICK
        )
    assert caught.value.problems[0].pointer == "/tables/children/foreign_keys/0"


def test_a_key_that_refers_to_itself_is_refused() -> None:
    keys = [{"columns": ["pid"], "table": "parents"}]
    schema = {"tables": {"parents": {"primary_key": ["pid"], "foreign_keys": keys}}}
    with pytest.raises(SchemaError, match="refers to itself") as caught:
        DatabaseSynthesizer.fit({"parents": _PARENTS}, schema=schema, **QUICK)
    assert caught.value.problems[0].pointer == "/tables/parents/foreign_keys/0"


def test_a_number_and_a_text_of_its_digits_are_the_same_key() -> None:
    parents = _PARENTS.assign(pid=[1, "1", *range(3, 101)])
    with pytest.raises(TableError, match="comes again: 1"):
        _keyed(parents, _CHILDREN.assign(pid=3))


def test_a_key_of_two_columns_is_whole_or_missing() -> None:
    parents = _PARENTS.assign(a=_PARENTS["pid"] % 10, b=_PARENTS["pid"] // 10)
    children = parents.iloc[_CHILDREN["pid"] - 1][["a", "b"]].reset_index(drop=True)
    children = children.assign(y=_NUMBERS, b=children["b"].mask(children.index < 9))
    keys = [{"columns": ["a", "b"], "table": "parents"}]
    schema = {
        "tables": {"parents": {"primary_key": ["a", "b"]}, "children": {"foreign_keys": keys}}
    }
    tables = {"parents": parents.drop(columns="pid"), "children": children}
    with pytest.raises(TableError, match="9 rows of table 'children' refer"):
        DatabaseSynthesizer.fit(tables, schema=schema, **QUICK)
    drawn = DatabaseSynthesizer.fit(
        tables, schema=schema, invalid_references="null", **QUICK
    ).sample(seed=1)
    are_blank = drawn["children"][["a", "b"]].isna()
    assert (are_blank["a"] == are_blank["b"]).all()


@pytest.mark.filterwarnings("ignore:table 'children'")
@pytest.mark.parametrize("unique", [[["y"], ["of z", "z"]], [["pid", "kind"]]])
def test_columns_that_are_unique_together_stay_so(unique: list[list[str]]) -> None:
    children = _CHILDREN.sort_values("pid").reset_index(drop=True)
    again = children.groupby("pid").cumcount()
    y = np.random.default_rng(1).permutation(300) / 2
    kind = pd.Series(list("abcd"))[(again + children["pid"]) % 4].to_numpy()
    children = children.assign(rank=again, kind=kind, y=y, z=np.arange(300) // 4)
    children["of z"] = pd.Series(list("abcd"))[np.arange(300) % 4].to_numpy()
    drawn = _keyed(_PARENTS, children, unique=unique)["children"]
    for columns in unique:
        assert not drawn.duplicated(columns).any()
    assert len(drawn) > 200


def test_rows_that_would_repeat_unique_values_are_left_out_and_told() -> None:
    keys = [{"columns": ["pid"], "table": "parents"}]
    schema = {
        "tables": {
            "parents": {"primary_key": ["pid"]},
            "children": {"foreign_keys": keys, "unique": [["y"]]},
        }
    }
    y = np.random.default_rng(1).permutation(300) / 4
    tables = {"parents": _PARENTS, "children": _CHILDREN.assign(y=y)}
    model = DatabaseSynthesizer.fit(tables, schema=schema, **QUICK)
    with pytest.warns(RepeatedRowsWarning, match="table 'children': .* rows are left out"):
        drawn = model.sample(scale=3.0, seed=1)
    assert drawn["children"]["y"].is_unique


def test_what_is_not_unique_is_refused_by_its_place() -> None:
    with pytest.raises(TableError, match="comes again") as caught:
        _keyed(_PARENTS, _CHILDREN.assign(kind="a"), unique=[["y"], ["kind"]])
    assert caught.value.problems[0].pointer == "/tables/children/unique/1"
    with pytest.raises(SchemaError) as wrong:
        _keyed(_PARENTS, _CHILDREN, unique="y")
    assert wrong.value.problems[0].pointer == "/tables/children/unique"


@pytest.mark.parametrize("order", ["pid", "word", "blank"])
def test_an_order_that_is_none_is_refused(order: str) -> None:
    children = _CHILDREN.assign(word="abc", blank=[None, *range(299)])
    with pytest.raises(SchemaError) as caught:
        _keyed(_PARENTS, children, order=order)
    assert caught.value.problems[0].pointer == "/tables/children/order"


def test_an_error_of_one_table_names_it() -> None:
    wrong = _CHILDREN.assign(y=["x", *map(str, range(299))])
    columns = [{"name": "y", "kind": "integer"}]
    with pytest.raises(SchemaError, match="table 'children'") as caught:
        _keyed(_PARENTS, wrong, columns=columns)
    assert str(caught.value.problems[0].pointer).startswith("/tables/children")


def test_levels_that_are_withheld_are_not_in_the_file() -> None:
    rare = [f"Rarename{i:02}" for i in range(20)]
    parents = _PARENTS.assign(town=[*rare, *["Common"] * 80])
    children = _CHILDREN.assign(town=parents["town"].iloc[_CHILDREN["pid"] - 1].to_numpy())
    keys = [{"columns": ["pid"], "table": "parents"}]
    kind = [{"name": "town", "kind": "categorical"}]
    schema = {
        "tables": {
            "parents": {"primary_key": ["pid"], "columns": kind},
            "children": {"foreign_keys": keys, "columns": kind},
        }
    }
    tables = {"parents": parents, "children": children}
    model = DatabaseSynthesizer.fit(tables, schema=schema, **QUICK)
    drawn = model.sample(seed=1)
    assert not set(drawn["parents"]["town"]) & set(rare)
    assert not set(drawn["children"]["town"]) & set(rare)
    assert b"Common" in model.to_bytes()
    assert b"Rarename" not in model.to_bytes()


@pytest.mark.slow
def test_the_links_that_a_fit_found_give_the_same_plan_when_they_are_stated() -> None:
    """A catalogue that is found and then stated is no parent; rows are drawn as before."""
    tables = shop(40)
    first = DatabaseSynthesizer.fit(tables, seed=0, **QUICK)
    stated = json.loads(json.dumps(first.schema.to_json()))
    assert stated["tables"]["products"]["keep"] is True
    again = DatabaseSynthesizer.fit(tables, schema=stated, seed=0, **QUICK)
    assert again.schema == first.schema
    drawn = again.sample(seed=1)
    for name, frame in first.sample(seed=1).items():
        pd.testing.assert_frame_equal(drawn[name], frame)


def with_missing_cells(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The shop's tables with a fifth of the cells missing, in another order and with an index."""
    random = np.random.default_rng(0)
    known = {"customer_id", "order_id", "product_id", "friend", "ordered"}
    found = {}
    for name, frame in tables.items():
        frame = frame.sample(frac=1, random_state=1)
        frame.index = pd.Index([f"{name} {i}" for i in range(len(frame))], name="line")
        blank = pd.DataFrame(random.random(frame.shape) < 0.2, frame.index, frame.columns)
        blank[[c for c in frame if c in known]] = False
        found[name] = frame.mask(blank) if name != "products" else frame
    return found


def test_missing_cells_are_filled_by_relations_and_by_the_model(
    model: DatabaseSynthesizer, loaded: DatabaseSynthesizer
) -> None:
    given = with_missing_cells(shop())
    filled = model.impute(given, seed=3)
    for name, frame in filled.items():
        pd.testing.assert_index_equal(frame.index, given[name].index)
        assert list(frame) == list(given[name])
        columns = [c for c in frame if c != "friend"]
        assert frame[columns].notna().all().all()
        known = given[name].notna()
        assert (frame[columns] == given[name][columns])[known[columns]].stack().all()
    lines = filled["lines"].merge(filled["products"], on="product_id", suffixes=("", " of it"))
    assert (lines["price"] == lines["price of it"]).all()
    orders = filled["orders"].merge(filled["customers"], on="customer_id")
    assert (orders["country_x"] == orders["country_y"])[
        given["orders"]["country"].isna().to_numpy()
    ].all()
    sums = (lines["price"] * lines["quantity"]).groupby(lines["order_id"]).sum()
    was_blank = filled["orders"][given["orders"]["total"].isna()].set_index("order_id")
    assert np.allclose(was_blank["total"], sums.reindex(was_blank.index), atol=0.006)
    again = loaded.impute(
        {name: frame[frame.columns[::-1]] for name, frame in reversed(given.items())}, seed=3
    )
    for name, frame in filled.items():
        pd.testing.assert_frame_equal(again[name][list(frame)], frame)


def test_a_missing_time_of_a_sequence_is_refused(model: DatabaseSynthesizer) -> None:
    tables = shop()
    tables["orders"].loc[7, "ordered"] = pd.NaT
    for use in (model.impute, model.log_likelihood):
        with pytest.raises(TableError, match="row 7 has no 'ordered'"):
            use(tables)


def test_determined_cells_of_an_entity_are_filled_from_its_other_rows() -> None:
    random = np.random.default_rng(1)
    who = np.repeat(np.arange(60), 4)
    visits = pd.DataFrame({"customer_id": [f"K{i:03d}" for i in who]})
    visits["country"] = random.choice(["DE", "FR"], 60)[who]
    visits["plan"] = random.choice(["free", "paid"], 60)[who]
    visits["pages"] = random.integers(1, 9, len(who))
    model = DatabaseSynthesizer.fit({"visits": visits}, seed=0, **QUICK)
    assert [split.key for split in model.splits] == [("customer_id",)]
    given = visits.assign(country=visits["country"].mask(visits.index % 4 < 3))
    filled = model.impute({"visits": given.iloc[::-1]})["visits"]
    assert (filled["country"].sort_index() == visits["country"]).all()
    given["country"] = given["country"].mask(visits.index < 4)
    filled = model.impute({"visits": given})["visits"]
    assert filled["country"].iloc[:4].nunique() == 1
    assert filled["country"].notna().all()


def test_a_table_without_a_column_of_its_key_is_refused_by_name() -> None:
    tables = {"parents": _PARENTS, "children": _CHILDREN}
    model = DatabaseSynthesizer.fit(tables, invalid_references="null", **QUICK)
    key = next(key for key in model.schema["children"].foreign_keys)
    broken = tables | {"children": _CHILDREN.drop(columns=key.columns[0])}
    with pytest.raises(TableError, match="part of a key") as caught:
        model.impute(broken)
    assert caught.value.problems[0].column == key.columns[0]
