"""`gcvae clone`: folders, SQLite files and a PostgreSQL database drawn anew."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
import sqlalchemy as sa

from gcvae_cli.__main__ import main
from tests.gcvae.linked.shop import shop
from tests.servers.servers import PostgresServer

QUICK = ["--preset", "fast", "--set", "max_steps=20", "--device", "cpu"]

DDL = """
CREATE TABLE products (product_id INTEGER PRIMARY KEY, title VARCHAR(40) NOT NULL, colour TEXT,
    price NUMERIC(8, 2), picture BLOB);
CREATE TABLE customers (customer_id VARCHAR(12) PRIMARY KEY, country CHAR(2), joined DATE,
    friend VARCHAR(12) REFERENCES customers (customer_id));
CREATE TABLE orders (order_id INTEGER PRIMARY KEY, customer_id VARCHAR(12) NOT NULL REFERENCES
    customers (customer_id), country CHAR(2), ordered DATE, channel TEXT, total NUMERIC(8, 2),
    shipped DATE);
CREATE TABLE lines (order_id INTEGER REFERENCES orders (order_id), product_id INTEGER REFERENCES
    products (product_id), price NUMERIC(8, 2), quantity INTEGER CHECK (quantity > 0),
    PRIMARY KEY (order_id, product_id));
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A SQLite file of a shop."""
    path = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(DDL)
        for name, frame in shop(40).items():
            for column in frame.select_dtypes("datetime"):
                frame[column] = frame[column].dt.strftime("%Y-%m-%d")
            frame.to_sql(name, connection, if_exists="append", index=False)
        connection.execute("UPDATE products SET picture = x'00ff'")
        connection.commit()
    return path


def test_a_sqlite_file_is_drawn_anew(source: Path, tmp_path: Path, capfd: object) -> None:
    target = tmp_path / "drawn.sqlite"
    assert main(["clone", f"sqlite:///{source}", "-o", str(target), *QUICK, "--json"]) == 0
    with closing(sqlite3.connect(target)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute("SELECT count(*) FROM customers").fetchone() == (40,)
        assert connection.execute("SELECT count(picture) FROM products").fetchone() == (0,)
        sums = connection.execute(
            "SELECT max(abs(total - s)) FROM orders JOIN (SELECT order_id, sum(price * quantity) AS"
            " s FROM lines GROUP BY order_id) USING (order_id)"
        ).fetchone()
        assert sums[0] < 0.006
    assert main(["clone", f"sqlite:///{source}", "-o", str(target), *QUICK]) == 2


def test_a_folder_is_drawn_anew_into_a_new_folder(tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    for name, frame in shop(40).items():
        if name == "lines":
            frame.to_parquet(folder / f"{name}.parquet")
        else:
            frame.to_csv(folder / f"{name}.csv", index=False)
    assert main(["clone", str(folder), "-o", str(tmp_path / "drawn"), *QUICK]) == 0
    names = sorted(path.name for path in (tmp_path / "drawn").iterdir())
    assert names == ["customers.csv", "lines.parquet", "orders.csv", "products.csv"]
    orders = pd.read_csv(tmp_path / "drawn" / "orders.csv")
    assert (
        pd.read_parquet(tmp_path / "drawn" / "lines.parquet")["order_id"]
        .isin(orders["order_id"])
        .all()
    )
    assert main(["clone", str(folder), "-o", str(tmp_path / "drawn"), *QUICK]) == 2


def test_keys_are_printed_to_be_edited(source: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["clone", f"sqlite:///{source}", "--keys"]) == 0
    tables = json.loads(capfd.readouterr().out)["tables"]
    assert tables["lines"]["primary_key"] == ["order_id", "product_id"]


@pytest.mark.parametrize(
    "source_name", ["sqlite:///none.db", "nowhere", "postgresql://x:y@127.0.0.1:1/z"]
)
def test_a_source_that_is_not_there_is_refused_without_its_password(
    source_name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["clone", source_name, "-o", str(tmp_path / "out"), *QUICK]) == 2
    told = capfd.readouterr().err
    assert told.startswith("gcvae: ")
    assert "x:y" not in told
    assert "Traceback" not in told


def test_a_postgresql_database_is_drawn_into_another_one(source: Path) -> None:
    with PostgresServer() as server:
        first, second = server.create_database("real"), server.create_database("drawn")
        assert main(["clone", f"sqlite:///{source}", "-o", first, *QUICK]) == 0
        assert main(["clone", first, "-o", second, *QUICK]) == 0
        engine = sa.create_engine(second)
        with engine.connect() as connection:
            lost = connection.scalar(
                sa.text(
                    "SELECT count(*) FROM lines LEFT JOIN orders USING (order_id) "
                    "WHERE orders.order_id IS NULL"
                )
            )
            assert (lost, connection.scalar(sa.text("SELECT count(*) FROM customers"))) == (0, 40)
        engine.dispose()
        assert main(["clone", first, "-o", second, *QUICK]) == 1
