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

QUICK = ["--preset", "fast", "--set", "max_steps=5", "--device", "cpu", "--seed", "0"]

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
        connection.execute("UPDATE orders SET shipped = '9999-12-31' WHERE order_id % 4 = 0")
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
        far = connection.execute("SELECT avg(shipped = '9999-12-31') FROM orders").fetchone()
        assert 0.1 < far[0] < 0.4
    assert main(["clone", f"sqlite:///{source}", "-o", str(target), *QUICK]) == 2


CONSTRAINED = """
CREATE TABLE members (member_id INTEGER PRIMARY KEY, email VARCHAR(40) UNIQUE,
    code INTEGER NOT NULL, level TEXT DEFAULT 'new', anything, seen DATETIME, noted TIMESTAMP,
    bell TIME, price NUMERIC(6, 1) UNIQUE CHECK (price >= 0));
CREATE UNIQUE INDEX by_code ON members (code);
CREATE INDEX by_lower ON members (lower(email)) WHERE code > 0;
CREATE TABLE loans (loan_id INTEGER PRIMARY KEY AUTOINCREMENT, member_id INTEGER NOT NULL
    REFERENCES members ON DELETE CASCADE, shelf TEXT NOT NULL, days INTEGER,
    weeks REAL GENERATED ALWAYS AS (days / 7.0), UNIQUE (member_id, shelf));
CREATE VIEW long_loans AS SELECT * FROM loans WHERE days > 20;
"""


@pytest.fixture
def constrained(tmp_path: Path) -> Path:
    """A SQLite file whose tables have constraints of every kind."""
    path = tmp_path / "library.sqlite"
    days = [f"2024-03-{1 + i % 28:02}" for i in range(60)]
    members = [
        (i, f"reader{i}@mail.org", 900 + 7 * i, f"L{i % 3}", i % 4, f"{day} 09:15:00",
         f"{day}T09:15", "09:00:00", i * 7 % 60 / 2)
        for i, day in enumerate(days)
    ]  # fmt: skip
    loans = [(i // 4, "ABCD"[i % 4], i % 30) for i in range(240)]
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(CONSTRAINED)
        connection.executemany(f"INSERT INTO members VALUES ({', '.join('?' * 9)})", members)
        connection.executemany("INSERT INTO loans (member_id, shelf, days) VALUES (?, ?, ?)", loans)
        connection.commit()
    return path


# A member borrows a shelf once; few rows that would repeat a pair may be left out.
@pytest.mark.filterwarnings("ignore:.*rows are left out")
def test_a_clone_has_the_ddl_of_its_source_and_rows_that_keep_to_it(
    constrained: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "drawn.sqlite"
    arguments = ["clone", f"sqlite:///{constrained}", "-o", str(target), "--scale", "2", *QUICK]
    assert main(arguments) == 0
    assert "members.bell: TIME is not modelled; written as NULL" in capfd.readouterr().err
    ddl = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
    with (
        closing(sqlite3.connect(constrained)) as source,
        closing(sqlite3.connect(target)) as drawn,
    ):
        assert drawn.execute(ddl).fetchall() == source.execute(ddl).fetchall()
        assert drawn.execute("PRAGMA foreign_key_check").fetchall() == []
        assert drawn.execute("SELECT count(*), count(DISTINCT price) FROM members").fetchone() == (
            120,
            120,
        )
        assert drawn.execute("SELECT count(*) FROM loans").fetchone()[0] > 400
        for column, length in (("seen", 19), ("noted", 16)):
            lengths = drawn.execute(f"SELECT DISTINCT length({column}) FROM members").fetchall()
            assert lengths == [(length,)]
        assert drawn.execute("SELECT DISTINCT substr(noted, 11, 1) FROM members").fetchall() == [
            ("T",)
        ]


def test_files_whose_names_differ_in_case_alone_are_one_table(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("u.csv", "U.csv"):
        (tmp_path / name).write_text("id,x\n1,2\n")
    assert main(["clone", str(tmp_path), "--keys"]) == 2
    assert "U.csv and u.csv are the same table" in capfd.readouterr().err


def test_a_folder_is_drawn_anew_into_a_new_folder(tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    for name, frame in shop(40).items():
        if name == "lines":
            frame.to_parquet(folder / f"{name}.parquet")
        elif name == "products":
            frame.to_csv(folder / f"{name}.csv", index=False, sep=";", decimal=",")
        else:
            frame.to_csv(folder / f"{name}.csv", index=False)
    assert main(["clone", str(folder), "-o", str(tmp_path / "drawn"), *QUICK]) == 0
    names = sorted(path.name for path in (tmp_path / "drawn").iterdir())
    assert names == ["customers.csv", "lines.parquet", "orders.csv", "products.csv"]
    products = pd.read_csv(tmp_path / "drawn" / "products.csv", sep=";", decimal=",")
    assert products["price"].dtype == float
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


POSTGRESQL = """
CREATE TYPE mood AS ENUM ('low', 'high');
CREATE TABLE members (id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email VARCHAR(40) UNIQUE,
    feels mood, level VARCHAR(10) NOT NULL DEFAULT 'new', seen TIMESTAMP DEFAULT now(),
    price NUMERIC(6, 2) CHECK (price >= 0));
CREATE INDEX by_lower ON members (lower(email)) WHERE price > 0;
CREATE TABLE loans (id SERIAL PRIMARY KEY, member_id INTEGER NOT NULL REFERENCES members ON DELETE
    CASCADE, shelf TEXT, days INTEGER, weeks NUMERIC GENERATED ALWAYS AS (days / 7.0) STORED,
    UNIQUE (member_id, shelf));
INSERT INTO members (email, feels, level, seen, price) SELECT 'reader' || i || '@mail.org',
    (ARRAY['low', 'high'])[1 + mod(i, 2)]::mood, 'L' || mod(i, 3), TIMESTAMP '2024-01-01 10:00'
    + make_interval(days => i), i FROM generate_series(1, 60) i;
INSERT INTO loans (member_id, shelf, days) SELECT 1 + i / 4, (ARRAY['A', 'B', 'C', 'D'])[1 +
    mod(i, 4)], mod(i, 30) FROM generate_series(0, 239) i;
"""


def test_constraints_of_postgresql_are_cloned_and_told_where_sqlite_has_none_of_them(
    postgres_server: PostgresServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told = "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid > 16000 "
    indexes = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"
    columns = (
        "SELECT table_name, column_name, column_default, is_nullable, identity_generation, udt_name"
        " FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2"
    )
    first, second = map(postgres_server.create_database, ("library", "drawn_library"))
    found = []
    for url in (first, second):
        engine = sa.create_engine(url)
        if url == first:
            with engine.begin() as connection:
                connection.exec_driver_sql(POSTGRESQL)
            assert main(["clone", first, "-o", second, *QUICK]) == 0
        with engine.connect() as connection:
            asked = (told + "ORDER BY 1", indexes, columns)
            found.append([connection.exec_driver_sql(query).all() for query in asked])
        engine.dispose()
    assert found[0] == found[1]
    assert main(["clone", first, "-o", second, *QUICK]) == 1
    capfd.readouterr()
    target = tmp_path / "drawn.sqlite"
    assert main(["clone", first, "-o", str(target), *QUICK]) == 0
    errors = capfd.readouterr().err
    for words in ("the default of members.level", "CHECK (price >=", "index by_lower of members"):
        assert words in errors
    with closing(sqlite3.connect(target)) as connection:
        assert connection.execute("SELECT DISTINCT length(seen) FROM members").fetchall() == [(19,)]
        assert connection.execute("SELECT count(DISTINCT email) FROM members").fetchone() == (60,)


@pytest.mark.slow
def test_a_postgresql_database_is_drawn_into_another_one(
    postgres_server: PostgresServer, source: Path
) -> None:
    first, second = map(postgres_server.create_database, ("shop", "drawn_shop"))
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
        far = "SELECT avg((shipped = '9999-12-31')::int) FROM orders"
        assert 0.05 < float(connection.scalar(sa.text(far)) or 0) < 0.5
    engine.dispose()
