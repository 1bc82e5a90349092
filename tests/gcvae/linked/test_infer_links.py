"""Keys that are found in names, uniqueness and inclusion of values."""

from __future__ import annotations

import pandas as pd

from gcvae.linked.infer_links import infer_database
from tests.gcvae.linked.shop import shop


def _found(tables: dict[str, pd.DataFrame], **given: object) -> dict[str, tuple[object, list[str]]]:
    schema = infer_database(tables, {"tables": given} if given else None)
    return {
        name: (table.primary_key, [str(key) for key in table.foreign_keys])
        for name, table in schema.tables.items()
    }


def test_keys_of_a_shop_are_found() -> None:
    found = _found(shop())
    assert found["customers"] == (("customer_id",), [])
    assert found["orders"] == (("order_id",), ["customer_id -> customers.customer_id"])
    assert found["lines"] == (
        ("order_id", "product_id"),
        ["order_id -> orders.order_id", "product_id -> products.product_id"],
    )


def test_names_in_other_styles_are_keys_too() -> None:
    tables = {
        "Artist": pd.DataFrame({"ArtistId": [1, 2, 3], "Name": ["a", "b", "c"]}),
        "Album": pd.DataFrame({"AlbumId": [7, 8], "ArtistId": [1.0, None], "Year": [1, 2]}),
        "categories": pd.DataFrame({"id": [1, 2], "parent_id": [None, 1.0]}),
        "items": pd.DataFrame({"id": [4, 5], "category": [1, 1], "n": [1, 2]}),
    }
    found = _found(tables)
    assert found["Album"] == (("AlbumId",), ["ArtistId -> Artist.ArtistId"])
    assert found["categories"] == (("id",), ["parent_id -> categories.id"])
    assert found["items"] == (("id",), ["category -> categories.id"])


def test_codes_that_other_tables_repeat_are_keys_and_free_texts_are_none() -> None:
    codes = [f"{k}7" for k in range(200, 230)]
    lines = pd.DataFrame({"order_no": [f"B{i // 3}" for i in range(60)], "pzn": codes * 2})
    lines["line"] = [f"{1 + i % 3}" for i in range(60)]
    tables = {
        "products": pd.DataFrame({"product": [f"Salve {c} g" for c in codes], "pzn": codes}),
        "orders": pd.DataFrame({"order_no": [f"B{i}" for i in range(20)], "paid": 1.5}),
        "lines": lines.sample(frac=1.0, random_state=1),
    }
    found = _found(tables)
    assert found["products"] == (("pzn",), [])
    assert found["lines"] == (
        ("order_no", "line"),
        ["order_no -> orders.order_no", "pzn -> products.pzn"],
    )


def test_numbers_of_rows_and_amounts_are_no_keys_of_other_tables() -> None:
    amounts = pd.DataFrame({"rank": range(1, 31), "price": [0.5 + k for k in range(30)]})
    tables = {"steps": amounts, "sales": pd.concat([amounts, amounts])}
    assert _found(tables) == {"steps": ((), []), "sales": ((), [])}


def test_what_is_said_wins() -> None:
    found = _found(shop(), orders={"foreign_keys": []}, customers={"primary_key": []})
    assert found["orders"] == (("order_id",), [])
    assert found["customers"][0] == ()


def test_numbers_that_happen_to_be_keys_are_no_references() -> None:
    tables = {
        "users": pd.DataFrame({"id": range(1, 101), "age": [20 + i % 50 for i in range(100)]}),
        "visits": pd.DataFrame(
            {"user_id": range(1, 101), "pages": [1 + i % 9 for i in range(100)]}
        ),
    }
    assert _found(tables)["visits"][1] == ["user_id -> users.id"]
