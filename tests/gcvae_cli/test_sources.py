"""Commands on tables of databases, buckets, web servers and other formats."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fastavro
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from gcvae_cli.__main__ import main
from gcvae_cli.sources.fetching import fetched
from gcvae_sources.databases import closing_engine, insert_rows
from gcvae_sources.errors import TargetError
from tests.lengths import first_of
from tests.servers.servers import MariaDBServer, PostgresServer, S3Server
from tests.servers.serving import serving

QUICK = ["--preset", "fast", "--set", "max_steps=5", "--device", "cpu"]
N_ROWS = 300


def table() -> pd.DataFrame:
    """A table of an integer, a number, a text with missing cells, and a time."""
    random = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "n": random.integers(0, 9, N_ROWS),
            "preis": random.gamma(2.0, 30.0, N_ROWS).round(2),
            "stadt": random.choice(["Zürich", "Łódź", None], N_ROWS),
            "zeit": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N_ROWS), "h"),
        }
    )


def _sqlite(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "shop.sqlite")) as connection:
        table().to_sql("orders", connection, index=False)
    return f"sqlite:///{folder}/shop.sqlite"


def _postgres(server: PostgresServer, name: str) -> str:
    url = server.create_database(name)
    engine = sa.create_engine(url.replace("postgresql", "postgresql+psycopg"))
    table().to_sql("orders", engine, index=False)
    engine.dispose()
    return url


def _url(kind: str, folder: Path, request: pytest.FixtureRequest, name: str) -> str:
    """URL of a database of a kind with the table `orders`."""
    if kind == "sqlite":
        return _sqlite(folder)
    if kind == "postgres":
        return _postgres(request.getfixturevalue("postgres_server"), name)
    server: MariaDBServer = request.getfixturevalue("mariadb_server")
    url = server.create_database(name)
    with closing_engine(sa.create_engine("mysql+pymysql://", creator=server.connect)) as engine:
        table().to_sql("orders", engine, schema=name, index=False)
    return url


@pytest.mark.parametrize("kind", first_of("postgres", "mariadb", "sqlite"))
def test_a_table_of_a_database_is_learned_and_written_back(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    url = _url(kind, tmp_path, request, "whole")
    model = str(tmp_path / "m.gcvae")
    assert main(["train", url, "--table", "orders", "-o", model, *QUICK]) == 0
    asked = ["sample", model, "--rows", "50", "--seed", "3", "-o"]
    assert main([*asked, url, "--into", "drawn"]) == 0
    assert main([*asked, str(tmp_path / "drawn.parquet")]) == 0

    back = fetched(url, "drawn", None, tmp_path)
    from_file = pd.read_parquet(tmp_path / "drawn.parquet")
    from_database = pd.read_parquet(back)
    from_database["zeit"] = pd.to_datetime(from_database["zeit"]).astype(from_file["zeit"].dtype)
    pd.testing.assert_frame_equal(from_database, from_file, check_dtype=False, check_exact=True)

    scored = str(tmp_path / "scores.csv")
    query = (
        "SELECT * FROM orders WHERE n < CAST(3 AS int) AND (stadt IS NULL OR stadt NOT LIKE '%:x%')"
    )
    assert main(["score", model, url, "--query", query, "-o", scored]) == 0
    assert len(pd.read_csv(scored)) == (table()["n"] < 3).sum()


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mariadb"])
@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM orders",
        "DROP TABLE orders",
        "INSERT INTO orders (n) VALUES (1)",
        "DELETE FROM orders RETURNING n",
        "SELECT 1; DELETE FROM orders",
        "WITH old AS (SELECT 1) DELETE FROM orders RETURNING n",
        "CREATE TABLE copy AS SELECT * FROM orders",
        "/* SELECT */ DELETE FROM orders",
        "VACUUM INTO 'copy.sqlite'",
    ],
)
def test_a_query_changes_nothing(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    query: str,
) -> None:
    url = _url(kind, tmp_path, request, f"kept_{abs(hash(query))}")
    assert main(["schema", url, "--query", query]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert len(pd.read_parquet(fetched(url, "orders", None, tmp_path))) == N_ROWS


def test_a_table_that_exists_is_kept_unless_it_may_be_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, model = _sqlite(tmp_path), str(tmp_path / "m.gcvae")
    assert main(["train", url, "--table", "orders", "-o", model, *QUICK]) == 0
    asked = ["sample", model, "--rows", "20", "--seed", "3", "-o", url, "--into", "orders"]
    capsys.readouterr()
    assert main(asked) == 1
    assert "--into: the database has the table 'orders'" in capsys.readouterr().err

    def count() -> int:
        with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as connection:
            return int(connection.execute("SELECT count(*) FROM orders").fetchone()[0])

    assert count() == N_ROWS
    assert main([*asked, "--if-exists", "append", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["output"] == url
    assert count() == N_ROWS + 20
    assert main([*asked, "--if-exists", "replace"]) == 0
    assert count() == 20


def test_a_bucket_is_read_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with S3Server() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        from pyarrow.fs import FileSystem

        system, _ = FileSystem.from_uri("s3://bucket/tables/orders.csv")
        with system.open_output_stream("bucket/tables/orders.csv") as stream:
            stream.write(table().to_csv(index=False).encode())
        model = str(tmp_path / "m.gcvae")
        assert main(["train", "s3://bucket/tables/orders.csv", "-o", model, *QUICK]) == 0
        drawn = "s3://bucket/tables/drawn.csv"
        assert main(["sample", model, "--rows", "9", "--seed", "1", "-o", drawn]) == 0
        assert len(pd.read_csv(fetched(drawn, None, None, tmp_path))) == 9


def test_a_table_of_a_web_server_is_read(tmp_path: Path) -> None:
    table().to_csv(tmp_path / "orders.csv", index=False)
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    with serving(server):
        url = f"http://127.0.0.1:{server.server_port}/orders.csv"
        schema = tmp_path / "schema.json"
        assert main(["schema", url, "-o", str(schema)]) == 0
        assert len(json.loads(schema.read_text())["columns"]) == 4


@pytest.mark.parametrize("ending", ["xlsx", "jsonl", "avro"])
def test_other_formats_are_the_same_table(tmp_path: Path, ending: str) -> None:
    path, frame = tmp_path / f"orders.{ending}", table()
    if ending == "xlsx":
        with pd.ExcelWriter(path) as book:
            pd.DataFrame({"a": [1]}).to_excel(book, sheet_name="first", index=False)
            frame.to_excel(book, sheet_name="orders", index=False)
    elif ending == "jsonl":
        frame.to_json(path, orient="records", lines=True, date_format="iso")
    else:
        kinds = {"n": "long", "preis": "double", "stadt": ["null", "string"], "zeit": "string"}
        fields = [{"name": name, "type": kind} for name, kind in kinds.items()]
        rows = json.loads(frame.to_json(orient="records", date_format="iso"))
        with path.open("wb") as file:
            fastavro.writer(file, {"type": "record", "name": "row", "fields": fields}, rows)
    sheet = "orders" if ending == "xlsx" else None
    found = pd.read_parquet(fetched(str(path), sheet, None, tmp_path))
    found["zeit"] = pd.to_datetime(found["zeit"]).dt.tz_localize(None).astype(frame["zeit"].dtype)
    pd.testing.assert_frame_equal(found, frame, check_dtype=False)


def test_a_column_that_is_missing_at_first_has_the_type_of_its_later_rows(tmp_path: Path) -> None:
    n = 25_000
    late = pd.DataFrame({"i": range(n), "x": [None] * (n - 3) + [1.5, 2.5, 3.5]})
    with closing(sqlite3.connect(tmp_path / "late.sqlite")) as connection:
        late.to_sql("late", connection, index=False)
    found = pd.read_parquet(fetched(f"sqlite:///{tmp_path}/late.sqlite", "late", None, tmp_path))
    assert (found["x"].count(), found["x"].sum(), len(found)) == (3, 7.5, n)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["sqlite:///{}/none.sqlite", "--table", "orders"], "there is no such file"),
        (["sqlite:///{}/shop.sqlite"], "a database needs one of --table NAME and --query"),
        (
            ["sqlite:///{}/shop.sqlite", "--table", "a", "--query", "b"],
            "a database needs one of --table NAME and --query",
        ),
        (
            ["sqlite:///{}/shop.sqlite", "--table", "order"],
            "--table: the database has no table 'order' (expected: one of: orders)",
        ),
        (["sqlite:///{}/shop.sqlite", "--query", "SELECT x FROM orders"], "no such column: x"),
        (
            ["sqlite:///{}/shop.sqlite", "--query", "SELECT n, n FROM orders"],
            "two columns have the same name",
        ),
        (["postgresql://a:b@127.0.0.1:1/x?password=secret", "--table", "t"], "127.0.0.1"),
        (["postgresql://a:p@secret@127.0.0.1:1/x", "--table", "t"], "write it as %40"),
        (["postgresql://127.0.0.1:port/x", "--table", "t"], "postgresql://127.0.0.1:port/x"),
        (["{}/book.xlsx", "--table", "none"], "(expected: one of: first, second)"),
        (["{}/plain.csv", "--table", "orders"], "(expected: a database or a workbook)"),
        (["{}/plain.csv", "--query", "SELECT 1"], "--query is for databases"),
        (["nothing://me:secret@host/x", "--table", "orders"], "nothing"),
        (["mysql+pymssql://me:secret@host/x", "--table", "orders"], "mysql"),
        (["mysql+mysqldb://me:secret@host/x", "--table", "orders"], "MySQLdb is not installed"),
        (["http://127.0.0.1:9/x.csv"], "http://127.0.0.1:9/x.csv: "),
        (["{}/none.csv"], "there is no such file"),
        (["{}/broken.jsonl"], "broken.jsonl: "),
        (["{}/broken.xlsx"], "broken.xlsx cannot be read as an Excel workbook: "),
        (["{}/broken.avro"], "broken.avro: "),
    ],
)
def test_a_source_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    _sqlite(tmp_path)
    (tmp_path / "plain.csv").write_text("a,b\n1,2\n3,4\n")
    for ending in ("jsonl", "xlsx", "avro"):
        (tmp_path / f"broken.{ending}").write_text("this is none")
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        for sheet in ("first", "second"):
            pd.DataFrame({"a": [1]}).to_excel(book, sheet_name=sheet, index=False)
    given = [word.format(tmp_path) for word in arguments]
    assert main(["schema", *given]) in (1, 2)
    error = capsys.readouterr().err
    assert told in error
    assert "secret" not in error
    assert error.startswith("gcvae: ")
    assert error.count("\n") == 1


def test_columns_of_other_types_are_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(tmp_path / "odd.sqlite")) as connection:
        connection.execute('CREATE TABLE "a.b" (n INTEGER, picture BLOB, day DATE)')
        connection.execute("INSERT INTO \"a.b\" VALUES (1, x'00ff', '2024-05-01')")
        connection.commit()
    found = pd.read_parquet(fetched(f"sqlite:///{tmp_path}/odd.sqlite", "a.b", None, tmp_path))
    assert list(found) == ["n", "day"]
    assert "picture is not modelled" in capsys.readouterr().err


def test_nothing_half_made_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, new = tmp_path / "m.gcvae", tmp_path / "new.sqlite"
    model.write_bytes(b"")
    asked = ["score", str(model), "sqlite:///none.sqlite", "--table", "x"]
    assert main([*asked, "-o", f"sqlite:///{new}", "--into", "x"]) == 2
    assert not new.exists()
    assert main(["sample", str(model), "--rows", "2", "-o", "x.csv", "--into", "x"]) == 2
    assert "--into is for databases" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mariadb"])
def test_written_rows_come_back_to_the_bit(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    random, n = np.random.default_rng(0), 12_000
    frame = pd.DataFrame(
        {
            "i": np.sort(random.integers(-(2**62), 2**62, n)),
            "x": random.standard_normal(n) * 10.0 ** random.integers(-300, 300, n),
            "t": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(random.integers(0, 10**15, n), unit="us"),
            "s": random.choice(["Łódź", "x'\"\\y%s", "  lead ", "😀", None], n),
            "m": pd.array(random.integers(0, 9, n), "Int64"),
        }
    )
    frame.loc[::5, ["x", "m"]] = None
    frame.to_parquet(tmp_path / "rows.parquet")
    url = _url(kind, tmp_path, request, "bits")
    insert_rows(url, {"back": tmp_path / "rows.parquet"}, "fail")
    query = "SELECT * FROM back ORDER BY i"  # a database keeps no order
    found = pd.read_parquet(fetched(url, None, query, tmp_path))
    found["t"] = pd.to_datetime(found["t"]).astype(frame["t"].dtype)
    found["m"] = found["m"].astype("Int64")
    pd.testing.assert_frame_equal(found, frame, check_exact=True)


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mariadb"])
def test_dates_are_read_and_appended_as_dates(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    url = _url(kind, tmp_path, request, "dates")
    driven = url.replace("postgresql:", "postgresql+psycopg:").replace("mysql:", "mysql+pymysql:")
    password = sa.make_url(url).password
    arguments = {} if password is None else {"password": password.encode()}
    engine = sa.create_engine(driven, connect_args=arguments)
    serial = "integer primary key" if kind == "sqlite" else "serial primary key"
    with closing_engine(engine), engine.begin() as connection:
        connection.exec_driver_sql(
            f"CREATE TABLE mini (id {serial}, due date NOT NULL, fee numeric(10,2), paid boolean)"
        )
        connection.exec_driver_sql(
            "INSERT INTO mini (due, fee, paid) VALUES ('2024-02-29', 1.50, true), "
            "('2025-01-31', NULL, false)"
        )
    back = pq.read_table(fetched(url, "mini", None, tmp_path)).drop_columns("id")
    assert back.schema.field("due").type == pa.date32()
    pq.write_table(back, tmp_path / "rows.parquet")
    insert_rows(url, {"mini": tmp_path / "rows.parquet"}, "append")
    texts = pd.DataFrame({"due": ["2024-03-01"], "fee": ["2.25"], "paid": ["1"]})
    texts.to_parquet(tmp_path / "texts.parquet")
    insert_rows(url, {"mini": tmp_path / "texts.parquet"}, "append")
    insert_rows(url, {"made": tmp_path / "rows.parquet"}, "fail")
    rows = pq.read_table(fetched(url, "mini", None, tmp_path))
    assert [str(day) for day in rows["due"].to_pylist()] == [
        "2024-02-29", "2025-01-31", "2024-02-29", "2025-01-31", "2024-03-01",
    ]  # fmt: skip
    assert rows["fee"].to_pylist() == [1.5, None, 1.5, None, 2.25]
    assert rows["paid"].to_pylist() == [True, False, True, False, True]
    made = pq.read_table(fetched(url, "made", None, tmp_path))
    assert made.schema.field("due").type == pa.date32()

    texts.assign(due="31.12.2024").to_parquet(tmp_path / "texts.parquet")
    told = r"row 0, column 'due': '31.12.2024' cannot .* type DATE \(expected: a date such as"
    with pytest.raises(TargetError, match=told):
        insert_rows(url, {"mini": tmp_path / "texts.parquet"}, "append")


def test_times_and_missing_whole_numbers_come_back_as_they_were(tmp_path: Path) -> None:
    frame = table().assign(n=table()["n"].astype("Int64").mask(table()["n"] == 3))
    frame.to_parquet(tmp_path / "rows.parquet")
    url = f"sqlite:///{tmp_path}/times.sqlite"
    insert_rows(url, {"rows": tmp_path / "rows.parquet"}, "fail")
    with closing(sqlite3.connect(tmp_path / "times.sqlite")) as connection:
        [(kind, time)] = connection.execute("SELECT typeof(n), zeit FROM rows LIMIT 1").fetchall()
    assert (kind, time) == ("integer", "2024-01-01 00:00:00")
    assert len(pd.read_parquet(fetched(url, None, "SELECT * FROM rows", tmp_path))) == N_ROWS


def test_a_database_to_write_needs_the_name_of_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "m.gcvae"
    model.write_bytes(b"")
    assert main(["sample", str(model), "--rows", "2", "-o", _sqlite(tmp_path)]) == 2
    assert "--into NAME is missing" in capsys.readouterr().err
    assert main(["sample", str(model), "--rows", "2", "-o", "https://example.com/x.csv"]) == 2
    assert "cannot be written to" in capsys.readouterr().err
