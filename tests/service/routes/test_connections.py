"""Connections: tables are read from and written to real servers; nothing else is reached."""

from __future__ import annotations

import gzip
import io
import logging
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import obstore
import pandas as pd
import psutil
import psycopg
import pytest
import sqlalchemy as sa
from obstore.store import S3Store

from catalog.records import Scope
from gcvae.cells.values import parse_table
from gcvae.files.tables import read_table
from gcvae.schema.columns import TableSchema
from tests.gcvae_cli.test_sources import N_ROWS, table
from tests.lengths import first_of
from tests.running_service import (
    OUTSIDE,
    Running,
    assert_problem,
    inline_pids,
    running,
    settings_in,
    work,
)
from tests.servers.servers import MariaDBServer, PostgresServer, S3Server
from tests.servers.web_server import Page, WebServer, web_server

PASSWORD = "pw-of-the-reader-ä/+@:%"
CSV = {"Content-Type": "text/csv"}
ORDERS = {"connection": "c", "table": "orders"}
QUICK = {"preset": "fast", "device": "cpu", "max_steps": 20, "seed": 1}


@dataclass(frozen=True)
class Places:
    """A service, and the servers that its connections lead to.

    Attributes:
        shop: URL of a database of PostgreSQL for SQLAlchemy, as its owner.
    """

    service: Running
    http: httpx.Client
    postgres: PostgresServer
    s3: S3Server
    web: WebServer
    shop: str
    folder: Path

    def connect(self, name: str, url: str, password: str | None = None) -> dict[str, Any]:
        body = {"name": name, "url": url} | ({} if password is None else {"password": password})
        made = self.http.post("/v1/connections", json=body)
        assert made.status_code == 201, made.text
        assert made.headers["Location"] == f"/v1/connections/{made.json()['id']}"
        return dict(made.json())

    def read(self, **body: Any) -> httpx.Response:
        return self.http.post("/v1/datasets", json=body)

    def frame(self, dataset: dict[str, Any]) -> pd.DataFrame:
        """The stored table of a dataset, as it is modelled."""
        record = self.service.catalog.workspace("default").datasets.get(dataset["id"])
        content = self.service.store.read(record.object_key, record.sha256)
        schema = TableSchema.from_json(record.schema)
        return parse_table(read_table(io.BytesIO(content)), schema)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    folder = tmp_path_factory.mktemp("connections")
    (folder / "files").mkdir()
    outside = {
        "outside_hosts": ("127.0.0.1", "localhost"),
        "outside_networks": ("127.0.0.0/8",),
        "outside_timeout_seconds": 3.0,
        "connection_folder": folder / "files",
        "max_inline_sample_rows": 5000,
    }
    with PostgresServer() as postgres, S3Server() as s3, web_server() as web:
        shop = postgres.create_database("shop").replace("postgresql", "postgresql+psycopg")
        engine = sa.create_engine(shop)
        table().to_sql("orders", engine, index=False)
        with engine.begin() as connection:
            written = PASSWORD.replace("%", "%%")
            connection.exec_driver_sql(f"CREATE ROLE reader LOGIN PASSWORD '{written}'")
            connection.exec_driver_sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
            connection.exec_driver_sql("GRANT CREATE ON SCHEMA public TO reader")
            connection.exec_driver_sql("CREATE SCHEMA synthetic AUTHORIZATION reader")
            rules = postgres.folder / "data/pg_hba.conf"
            rules.write_text(f"host all reader all scram-sha-256\n{rules.read_text()}")
            connection.exec_driver_sql("SELECT pg_reload_conf()")
        engine.dispose()
        with closing(sqlite3.connect(folder / "files/shop.sqlite")) as lite:
            table().to_sql("orders", lite, index=False)
        with running(settings_in(folder / "service", **outside)) as service:
            http = httpx.Client(base_url=service.url, timeout=120)
            found = Places(service, http, postgres, s3, web, shop, folder)
            server = f"127.0.0.1:{postgres.port}"
            found.connect("shop", f"postgresql://reader@{server}/shop", PASSWORD)
            found.connect("owner", f"postgresql://gcvae@{server}/shop")
            found.connect("lite", "sqlite:///shop.sqlite")
            found.connect("lake", f"s3://AK@bucket/pre%2Ffix?endpoint={s3.url}", PASSWORD)
            found.connect("web", f"{web.url}/tables/", PASSWORD)
            yield found
            http.close()


@pytest.fixture(scope="module")
def uploaded(places: Places) -> dict[str, Any]:
    """The table, uploaded as a file."""
    return dict(places.http.post("/v1/datasets", content=_csv(), headers=CSV).json())


@pytest.fixture(scope="module")
def model(places: Places, uploaded: dict[str, Any]) -> dict[str, Any]:
    """A ready model of the table."""
    return _train(places, uploaded)


@pytest.fixture(scope="module")
def sample(places: Places, model: dict[str, Any]) -> str:
    """The id of a sample of that model, a Parquet file."""
    return _sample(places, model)


def _train(places: Places, dataset: dict[str, Any]) -> dict[str, Any]:
    asked = {"dataset_id": dataset["id"], "training": QUICK}
    made = places.http.post("/v1/models", json=asked).json()
    work(places.service, made["job_id"])
    return dict(places.http.get(f"/v1/models/{made['id']}").json())


def _sample(places: Places, model: dict[str, Any], **more: Any) -> str:
    """The id of a sample that a job has made."""
    body = {"rows": 50, "seed": 3, "format": "parquet", "job": True} | more
    made = places.http.post(f"/v1/models/{model['id']}/samples", json=body)
    assert made.status_code == 202, made.text
    work(places.service, made.json()["job_id"])
    return str(made.json()["id"])


def _rows(places: Places, name: str) -> pd.DataFrame:
    engine = sa.create_engine(places.shop)
    with engine.connect() as connection:
        frame = pd.read_sql_query(sa.text(f"SELECT * FROM {name}"), connection)
    engine.dispose()
    return frame


def _put(places: Places, key: str, content: bytes) -> None:
    obstore.put(_bucket(places), key, content)


def _bucket(places: Places) -> S3Store:
    config = {"endpoint": places.s3.url, "access_key_id": "test", "secret_access_key": "test"}
    return S3Store("bucket", config=config, client_options={"allow_http": True})  # type: ignore[arg-type]


def _csv() -> bytes:
    return bytes(table().to_csv(index=False).encode())


def _untouched(places: Places) -> Callable[[], None]:
    """A check that nothing was kept since now, and that no process is left."""
    before, processes = places.service.traces(), inline_pids()

    def check() -> None:
        assert places.service.traces() == before
        until = time.monotonic() + 10
        while inline_pids() - processes:
            assert time.monotonic() < until
            time.sleep(0.05)

    return check


@pytest.mark.parametrize(
    "source",
    [
        {"connection": "shop", "table": "orders"},
        {"connection": "shop", "table": "public.orders"},
        {"connection": "shop", "query": "SELECT * FROM orders"},
        {"connection": "lite", "table": "orders"},
        {"connection": "lake", "key": "orders.csv"},
        {"connection": "web", "key": "2026/orders.csv"},
        {"connection": "web", "key": "orders.csv.gz"},
        {"connection": "web", "key": "orders.jsonl"},
        {"connection": "lake", "key": "ä b/orders.parquet"},
    ],
)
def test_a_table_of_a_connection_is_the_table_of_the_file(
    places: Places, uploaded: dict[str, Any], source: dict[str, str]
) -> None:
    content = io.BytesIO()
    table().to_parquet(content)
    lines = table().to_json(orient="records", lines=True, date_format="iso")
    _put(places, "pre/fix/orders.csv", _csv())
    _put(places, "pre/fix/ä b/orders.parquet", content.getvalue())
    places.web.pages |= {
        "/tables/2026/orders.csv": Page(_csv()),
        "/tables/orders.csv.gz": Page(gzip.compress(_csv())),
        "/tables/orders.jsonl": Page(lines.encode()),
    }
    made = places.read(**source)
    assert made.status_code == 201, made.text
    dataset = made.json()
    assert dataset["source"] == source
    assert (dataset["name"], dataset["rows"]) == (
        "query" if "query" in source else source.get("table", "orders"),
        N_ROWS,
    )
    assert uploaded["source"] is None
    kinds = [
        [(column["name"], column["kind"]) for column in one["schema"]["columns"]]
        for one in (dataset, uploaded)
    ]
    assert kinds[0] == kinds[1]
    found, wanted = places.frame(dataset), places.frame(uploaded)
    for frame in (found, wanted):
        frame["zeit"] = pd.to_datetime(frame["zeit"], utc=True).astype("datetime64[us, UTC]")
    pd.testing.assert_frame_equal(found, wanted, check_dtype=False)
    if source.get("key", "").endswith(".csv"):
        assert dataset["sha256"] == uploaded["sha256"]


@pytest.fixture(params=first_of("shop", "maria", "lite", "lake"))
def name(places: Places, request: pytest.FixtureRequest) -> Iterator[str]:
    """A connection to a database with the table `orders`, or to a bucket with such a file."""
    if request.param == "maria":
        maria: MariaDBServer = request.getfixturevalue("mariadb_server")
        maria.create_database("shop")
        engine = sa.create_engine("mysql+pymysql://", creator=maria.connect)
        table().to_sql("orders", engine, schema="shop", index=False)
        engine.dispose()
        url = f"mariadb://{maria.user}@127.0.0.1:{maria.port}/shop"
        places.connect("maria", url, maria.password)
    _put(places, "pre/fix/orders.csv", _csv())
    yield request.param
    if request.param == "maria":
        places.http.delete("/v1/connections/maria")
    if request.param == "lite":
        with closing(sqlite3.connect(places.folder / "files/shop.sqlite")) as lite:
            lite.execute("DROP TABLE drawn_back")


def test_a_table_is_trained_and_written_back_as_that_of_the_file_to_the_bit(
    places: Places, model: dict[str, Any], name: str
) -> None:
    def place(what: str) -> dict[str, str]:
        where = {"key": f"{what}.csv"} if name == "lake" else {"table": what}
        return {"connection": name} | where

    dataset = places.read(**place("orders")).json()
    drawn, trained = [], _train(places, dataset)
    for one in (model, trained):
        body = {"rows": 200, "seed": 5, "format": "csv"}
        answer = places.http.post(f"/v1/models/{one['id']}/samples", json=body)
        # A database has no notation of numbers, which a CSV file has: 47.0 is written as 47.
        drawn.append(pd.read_csv(io.BytesIO(answer.content), parse_dates=["zeit"]))
    pd.testing.assert_frame_equal(*drawn, check_exact=True)
    sample = _sample(places, trained, seed=5, format="csv" if name == "lake" else "parquet")
    written = places.http.post(f"/v1/samples/{sample}/export", json=place("drawn_back"))
    assert written.status_code == 201, written.text
    back = places.read(**place("drawn_back"), schema=dataset["schema"]).json()
    found, wanted = places.frame(back), drawn[0][:50]
    found["zeit"] = pd.to_datetime(found["zeit"])
    pd.testing.assert_frame_equal(found, wanted, check_dtype=False, check_exact=True)


def test_a_table_of_a_connection_is_checked_as_an_upload_is(
    places: Places, start: Callable[..., Running]
) -> None:
    places.web.pages["/tables/one.csv"] = Page(b"a,a\n1,2\n")
    uploaded = places.http.post("/v1/datasets", content=b"a,a\n1,2\n", headers=CSV).json()
    refused = places.read(connection="web", key="one.csv").json()
    for member in ("type", "title", "detail", "errors"):
        assert refused[member] == uploaded[member], member
    patched = {"columns": [{"name": "n", "kind": "categorical"}]}
    made = places.read(connection="shop", table="orders", schema=patched, name="mine").json()
    assert (made["name"], made["schema"]["columns"][0]["kind"]) == ("mine", "categorical")
    wrong = {"columns": [{"name": "m", "kind": "categorical"}]}
    refused = places.read(connection="shop", table="orders", schema=wrong)
    assert_problem(refused, 422, "invalid-schema")


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[WebServer]:
    """A web server that no connection leads to."""
    with web_server() as found:
        yield found


@pytest.mark.parametrize(
    ("body", "status", "pointer", "told"),
    [
        ({"connection": "none", "table": "orders"}, 404, None, "'none'"),
        ({"connection": "shop"}, 422, "/table", "one table or query"),
        ({"connection": "shop", "table": "a", "query": "b"}, 422, "/table", "one table or query"),
        ({"connection": "shop", "key": "orders.csv"}, 422, "/key", "key is for files"),
        ({"connection": "shop", "table": "order"}, 422, "/table", "no table 'order'"),
        ({"connection": "shop", "table": "../../x"}, 422, "/table", "no table '../../x'"),
        ({"connection": "shop", "query": "DELETE FROM orders"}, 422, "/query", "not a SELECT"),
        ({"connection": "shop", "query": "SELECT 1; SELECT 2"}, 422, None, ""),
        (
            {"connection": "owner", "query": "WITH x AS (SELECT 1) DELETE FROM orders RETURNING n"},
            422, None, "syntax error",
        ),
        ({"connection": "lite", "query": "ATTACH 'x' AS y"}, 422, "/query", "not a SELECT"),
        ({"connection": "lite", "query": "SELECT 1; SELECT 2"}, 422, None, "lite: You can only"),
        ({"connection": "lake", "query": "SELECT 1"}, 422, "/query", "query is for databases"),
        ({"connection": "lake"}, 422, "/key", "key is missing"),
        ({"connection": "lake", "key": "none.csv"}, 422, "/key", "there is no such file"),
        ({"connection": "web", "key": "none.csv"}, 422, "/key", "there is no such file"),
        ({"connection": "web", "key": "../x"}, 422, "/key", "not the path of a file"),
        ({"connection": "web", "key": "/x"}, 422, "/key", "not the path of a file"),
        ({"connection": "web", "key": "a\\..\\x"}, 422, "/key", "not the path of a file"),
        ({"connection": "web", "key": "a\r\nHost: evil"}, 422, "/key", "match pattern"),
        ({"connection": "web", "key": "moved.csv"}, 422, None, "redirects, which is not followed"),
        ({"connection": "web", "key": "closed.csv"}, 422, None, "refuses the request: 403"),
        ({"connection": "web", "key": "broken.xlsx"}, 422, None, "broken.xlsx"),
        ({"connection": "web", "key": "orders.csv", "table": "x"}, 422, "/table", "one table"),
        ({"connection": "web", "key": "x", "url": "http://x"}, 422, "/url", "unknown member"),
        ({"connection": "web", "key": "orders.csv", "encoding": "klingon"}, 422, "/encoding", ""),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named_and_leaves_nothing(
    places: Places,
    elsewhere: WebServer,
    body: dict[str, Any],
    status: int,
    pointer: str | None,
    told: str,
) -> None:
    check = _untouched(places)
    places.web.pages |= {
        "/tables/orders.csv": Page(_csv()),
        "/tables/broken.xlsx": Page(b"this is none"),
        "/tables/closed.csv": Page(b"", 403),
        "/tables/moved.csv": Page(b"", 302, {"Location": f"{elsewhere.url}/orders.csv"}),
    }
    refused = places.read(**body)
    assert refused.status_code == status, refused.text
    assert told in refused.text
    assert str(places.folder) not in refused.text
    if pointer is not None:
        assert refused.json()["errors"][0]["pointer"] == pointer
    assert elsewhere.asked == []
    check()
    assert len(_rows(places, "orders")) == N_ROWS


@pytest.mark.parametrize(
    ("limits", "sources"),
    [
        (
            {"max_rows": 100, "max_columns": 2},
            [
                ({"connection": "c", "query": "SELECT n FROM orders"}, "MAX_ROWS"),
                ({"connection": "c", "query": "SELECT * FROM orders LIMIT 9"}, "MAX_COLUMNS"),
            ],
        ),
        ({"max_table_bytes": 900}, [(ORDERS, "MAX_TABLE_BYTES")]),
        (
            {"max_upload_bytes": 900},
            [
                (ORDERS, "MAX_UPLOAD_BYTES"),
                ({"connection": "w", "key": "endless"}, "MAX_UPLOAD_BYTES"),
                ({"connection": "w", "key": "bomb"}, "MAX_UPLOAD_BYTES"),
            ],
        ),
        (
            {"connection_seconds": 0.4},
            [
                ({"connection": "w", "key": "slow"}, "CONNECTION_SECONDS"),
                ({"connection": "c", "query": "SELECT pg_sleep(60)"}, "CONNECTION_SECONDS"),
            ],
        ),
    ],
)
def test_the_limits_of_uploads_hold(
    places: Places,
    start: Callable[..., Running],
    limits: dict[str, Any],
    sources: list[tuple[dict[str, Any], str]],
) -> None:
    def slow() -> Iterator[bytes]:
        for _ in range(100):
            yield b"1,2\n"
            time.sleep(0.1)

    def endless() -> Iterator[bytes]:
        while True:
            yield b"1,2\n" * 1000

    places.web.pages["/slow"] = Page(slow)
    places.web.pages["/endless"] = Page(endless)
    zipped = gzip.compress(b"1,2\n" * 100_000)
    assert len(zipped) < 900
    places.web.pages["/bomb"] = Page(zipped, headers={"Content-Encoding": "gzip"})
    service = start(**OUTSIDE, **limits)
    server = f"postgresql://gcvae@127.0.0.1:{places.postgres.port}/shop"
    for name, url in (("c", server), ("w", places.web.url)):
        made = service.http.post("/v1/connections", json={"name": name, "url": url})
        assert made.status_code == 201
    before = service.traces()
    for source, setting in sources:
        refused = service.http.post("/v1/datasets", json=source)
        assert refused.status_code in (413, 422)
        assert refused.json()["setting"] == f"GCVAE_{setting}"
    assert service.traces() == before


def test_the_test_of_a_connection_names_tables_or_the_reason(places: Places) -> None:
    def test(name: str) -> httpx.Response:
        return places.http.post(f"/v1/connections/{name}/test")

    tables = test("shop").json()["tables"]
    assert "orders" in tables
    assert test("lite").json() == {"tables": ["orders"]}
    assert test("lake").json() == {"tables": None}
    assert test("web").json() == {"tables": None}
    port = places.postgres.port
    for name, url, told in (
        ("no-user", f"postgresql://nobody@127.0.0.1:{port}/shop", 'role "nobody" does not exist'),
        ("no-database", f"postgresql://gcvae@127.0.0.1:{port}/none", 'database "none"'),
        ("no-server", "postgresql://gcvae@127.0.0.1:1/none", "refused"),
        ("no-mysql", "mysql://gcvae@127.0.0.1:1/none", "Can't connect"),
        ("no-file", "sqlite:///none.sqlite", "there is no such file"),
        ("no-bucket", f"s3://AK@nobucket?endpoint={places.s3.url}", "404 NoSuchBucket"),
        ("no-web", "http://127.0.0.1:1", "no connection: ConnectError"),
    ):
        places.connect(name, url, "pw")
        problem = assert_problem(test(name), 422, "unreadable-source")
        assert told in problem["detail"]
        assert str(places.folder) not in problem["detail"]
        places.http.delete(f"/v1/connections/{name}")


def test_the_test_of_a_connection_has_a_deadline(
    places: Places, start: Callable[..., Running]
) -> None:
    def stall() -> Iterator[bytes]:
        for _ in range(600):
            yield b" "
            time.sleep(0.1)

    places.web.pages["/silent/.gcvae-connection-test"] = Page(stall, 403)
    http = start(**OUTSIDE, outside_timeout_seconds=0.5).http
    body = {"name": "silent", "url": f"{places.web.url}/silent"}
    assert http.post("/v1/connections", json=body).status_code == 201
    places.http.post("/v1/connections/web/test")  # the processes' server is there
    began = time.monotonic()
    refused = http.post("/v1/connections/silent/test")
    assert time.monotonic() - began < 10
    problem = assert_problem(refused, 422, "limit-exceeded")
    assert problem["setting"] == "GCVAE_OUTSIDE_TIMEOUT_SECONDS"


def test_rows_of_a_sample_are_written_to_a_database(places: Places, sample: str) -> None:
    def export(**body: Any) -> httpx.Response:
        return places.http.post(f"/v1/samples/{sample}/export", json=body)

    asked = {"connection": "shop", "table": "drawn"}
    made = export(**asked)
    assert made.status_code == 201, made.text
    assert made.json() == asked | {"key": None, "rows": 50}
    wanted = pd.read_parquet(io.BytesIO(places.http.get(f"/v1/samples/{sample}/content").content))
    pd.testing.assert_frame_equal(_rows(places, "drawn"), wanted, check_dtype=False)
    refused = assert_problem(export(**asked), 422, "unwritable-target")
    assert refused["errors"][0]["pointer"] == "/table"
    assert export(**asked, if_exists="append").status_code == 201
    assert len(_rows(places, "drawn")) == 100
    assert export(**asked, if_exists="replace").status_code == 201
    assert len(_rows(places, "drawn")) == 50
    assert export(connection="shop", table="synthetic.drawn").status_code == 201
    assert len(_rows(places, "synthetic.drawn")) == 50
    # The table of another user is neither replaced nor appended to.
    for mode in ("append", "replace"):
        body = {"connection": "shop", "table": "orders", "if_exists": mode}
        assert_problem(export(**body), 422, "unwritable-target")
    assert len(_rows(places, "orders")) == N_ROWS
    back = places.read(connection="shop", table="drawn")
    assert back.json()["rows"] == 50


def test_a_sample_is_written_to_a_bucket_and_to_a_file(
    places: Places, model: dict[str, Any], sample: str
) -> None:
    parquet, csv = sample, _sample(places, model, format="csv")

    def export(sample: str, **body: Any) -> httpx.Response:
        return places.http.post(f"/v1/samples/{sample}/export", json=body)

    for sample, key in ((csv, "out/drawn.csv"), (parquet, "drawn.parquet")):
        assert export(sample, connection="lake", key=key).status_code == 201
        wanted = places.http.get(f"/v1/samples/{sample}/content").content
        assert obstore.get(_bucket(places), f"pre/fix/{key}").bytes() == wanted
    again = {"connection": "lake", "key": "drawn.parquet"}
    problem = assert_problem(export(csv, **again), 422, "unwritable-target")
    assert problem["errors"][0]["pointer"] == "/key"
    assert export(csv, **again, if_exists="replace").status_code == 201
    assert export(parquet, connection="lite", table="drawn").status_code == 201
    with closing(sqlite3.connect(places.folder / "files/shop.sqlite")) as lite:
        assert lite.execute("SELECT count(*) FROM drawn").fetchone() == (50,)
    for body, pointer in (
        ({"connection": "lake", "key": "x", "if_exists": "append"}, "/if_exists"),
        ({"connection": "lake", "table": "x"}, "/table"),
        ({"connection": "web", "key": "x"}, "/connection"),
        ({"connection": "shop", "table": "x"}, "/connection"),  # CSV
        ({"connection": "shop", "table": "x", "if_exists": "upsert"}, "/if_exists"),
    ):
        refused = assert_problem(export(csv, **body), 422, "invalid-request")
        assert refused["errors"][0]["pointer"] == pointer
    assert_problem(export(parquet, connection="shop"), 422, "invalid-request")
    assert_problem(export("smp_none", connection="shop", table="x"), 404, "not-found")


def test_a_sample_of_a_database_is_written_as_its_tables(places: Places) -> None:
    users = pd.DataFrame({"id": range(40), "age": [20 + n % 9 for n in range(40)]})
    visits = pd.DataFrame({"id": range(90), "user_id": [n % 40 for n in range(90)], "cost": 1.5})
    files = [
        ("file", (f"{name}.csv", frame.to_csv(index=False)))
        for name, frame in (("users", users), ("visits", visits))
    ]
    dataset = places.http.post("/v1/datasets", files=files).json()
    model = _train(places, dataset)
    sample = _sample(places, model, rows=None, scale=1.0)
    body = {"connection": "shop", "table": "synthetic."}
    made = places.http.post(f"/v1/samples/{sample}/export", json=body)
    assert made.status_code == 201, made.text
    assert len(_rows(places, "synthetic.users")) == 40
    merged = _rows(places, "synthetic.visits").merge(
        _rows(places, "synthetic.users"), left_on="user_id", right_on="id"
    )
    assert len(merged) == len(_rows(places, "synthetic.visits"))
    again = places.http.post(f"/v1/samples/{sample}/export", json=body)
    assert_problem(again, 422, "unwritable-target")


def test_the_rows_of_a_killed_writer_are_not_there(places: Places, sample: str) -> None:
    url = f"/v1/samples/{sample}/export"
    body = {"connection": "owner", "table": "locked", "if_exists": "append"}
    assert places.http.post(url, json=body).status_code == 201
    with psycopg.connect(f"{places.postgres.url}/shop") as other:
        other.execute("LOCK TABLE locked IN ACCESS EXCLUSIVE MODE")

        def waits() -> bool:
            waiting = other.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
            return waiting == (1,)

        answer = _killed(lambda: places.http.post(url, json=body), waits)
    assert_problem(answer, 503, "process-died")
    time.sleep(0.5)
    assert len(_rows(places, "locked")) == 50


def test_a_killed_reader_leaves_nothing(places: Places) -> None:
    def stall() -> Iterator[bytes]:
        yield _csv()
        time.sleep(20)

    places.web.pages["/tables/stalled.csv"] = Page(stall)
    check = _untouched(places)
    body = {"connection": "web", "key": "stalled.csv"}
    answer = _killed(
        lambda: places.read(**body),
        lambda: any(path == "/tables/stalled.csv" for path, _ in places.web.asked),
    )
    assert_problem(answer, 503, "process-died")
    check()
    temporary = [path for path in Path("/tmp").glob("gcvae-*/*") if "stalled" in path.name]
    assert temporary == []


def _killed(ask: Callable[[], httpx.Response], is_at_work: Callable[[], bool]) -> httpx.Response:
    """The answer to a call whose process is killed while it waits."""
    answers: list[httpx.Response] = []
    before = inline_pids()
    caller = threading.Thread(target=lambda: answers.append(ask()))
    caller.start()
    until = time.monotonic() + 20
    while not ((new := inline_pids() - before) and is_at_work()):
        assert time.monotonic() < until
        time.sleep(0.02)
    for pid in new:
        os.kill(pid, signal.SIGKILL)
    caller.join(30)
    return answers[0]


def test_a_password_is_kept_encrypted_and_comes_out_nowhere(
    places: Places, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    secret = "zv9-very-secret-word"
    caplog.set_level(logging.DEBUG)
    answers = [
        places.http.post("/v1/connections", json={"name": name, "url": url, "password": secret})
        for name, url in (
            ("s-database", f"postgresql://nobody@127.0.0.1:{places.postgres.port}/shop"),
            ("s-mysql", "mysql://nobody@127.0.0.1:1/shop"),
            ("s-bucket", f"s3://AK@nobucket?endpoint={places.s3.url}"),
            ("s-web", f"{places.web.url}/closed"),
            ("s-user", f"http://user@{places.web.url[7:]}/closed"),
            ("s-wrong", "http://evil.org"),
            ("s-wrong", f"http://me:{secret}@127.0.0.1"),
            ("s wrong", "http://127.0.0.1"),
            ("con_1", "http://127.0.0.1"),
        )
    ]
    assert [answer.status_code for answer in answers] == [201] * 5 + [422] * 4
    for more in ("\0", "\n", "\r\nHost: evil"):  # a driver would drop what follows
        body = {"name": "s-cut", "url": "http://127.0.0.1", "password": f"{secret}{more}"}
        answers.append(places.http.post("/v1/connections", json=body))
        problem = assert_problem(answers[-1], 422, "invalid-request")
        assert problem["errors"][0]["pointer"] == "/password"
    places.web.pages["/closed/.gcvae-connection-test"] = Page(b"", 401)
    for name in ("s-database", "s-mysql", "s-bucket", "s-web", "s-user"):
        answers += [
            places.http.post(f"/v1/connections/{name}/test"),
            places.read(connection=name, table="x", key="x"),
            places.read(connection=name, table="x"),
            places.read(connection=name, key="x"),
            places.http.get(f"/v1/connections/{name}"),
        ]
    answers += [places.http.get(path) for path in ("/v1/connections", "/v1/audit", "/metrics")]
    sent = [headers.get("authorization", "") for _, headers in places.web.asked]
    assert f"Bearer {secret}" in sent  # it was used
    told = "\n".join(f"{answer.headers} {answer.text}" for answer in answers)
    assert "has_password" in told
    assert secret not in told
    assert secret not in caplog.text
    out, err = capfd.readouterr()
    assert secret not in out + err
    file = places.service.settings.home_dir / "catalog.sqlite"
    for path in (file, file.with_name("catalog.sqlite-wal")):
        assert secret.encode() not in (path.read_bytes() if path.exists() else b"")
    key = places.service.settings.home_dir / "secrets.key"
    assert key.stat().st_mode & 0o077 == 0


def test_a_password_belongs_to_its_url_and_key(places: Places, tmp_path: Path) -> None:
    connection = places.connect("moved", f"{places.web.url}/a", "pw")
    with places.service.catalog.database.writing() as session:
        moved = "UPDATE connections SET url = :url WHERE id = :id"
        session.execute(sa.text(moved), {"url": f"{places.web.url}/b", "id": connection["id"]})
    n_asked = len(places.web.asked)
    refused = places.http.post("/v1/connections/moved/test")
    problem = assert_problem(refused, 422, "invalid-request")
    assert "cannot be read with the key in GCVAE_SECRETS_KEY" in problem["detail"]
    assert len(places.web.asked) == n_asked


def test_without_a_key_no_password_is_kept(tmp_path: Path, places: Places) -> None:
    url = places.postgres.create_database("records")
    body = {"name": "web", "url": places.web.url, "password": "pw"}
    with running(settings_in(tmp_path, database_url=url, **OUTSIDE)) as service:
        refused = service.http.post("/v1/connections", json=body)
        problem = assert_problem(refused, 422, "invalid-request")
        assert "GCVAE_SECRETS_KEY" in problem["errors"][0]["expected"]
        del body["password"]
        assert service.http.post("/v1/connections", json=body).status_code == 201
        again = service.http.post("/v1/connections", json=body)
        assert_problem(again, 409, "conflict")
    assert not (tmp_path / "secrets.key").exists()
    with running(
        settings_in(tmp_path, database_url=url, secrets_key="k" * 32, **OUTSIDE)
    ) as service:
        made = service.http.post("/v1/connections", json=body | {"name": "w", "password": "pw"})
        assert made.status_code == 201
        assert service.http.post("/v1/connections/w/test").status_code == 200


def test_making_and_deleting_needs_the_scope_admin_and_using_the_scope_write(
    start: Callable[..., Running], places: Places
) -> None:
    service = start(**OUTSIDE)
    body = {"name": "web", "url": f"{places.web.url}/tables"}
    assert service.http.post("/v1/connections", json=body).status_code == 201
    places.web.pages["/tables/orders.csv"] = Page(_csv())

    def client(workspace: str, *scopes: Scope) -> httpx.Client:
        _, text = service.catalog.keys.create(workspace, "", [*scopes])
        headers = {"Authorization": f"Bearer {text}"}
        return httpx.Client(base_url=service.url, headers=headers, timeout=60)

    source = {"connection": "web", "key": "orders.csv"}
    with client("default", Scope.READ, Scope.WRITE) as http:
        assert http.get("/v1/connections").json()["items"][0]["name"] == "web"
        assert http.post("/v1/connections/web/test").status_code == 200
        made = http.post("/v1/datasets", json=source)
        assert made.status_code == 201
        again = body | {"name": "test"}
        assert_problem(http.post("/v1/connections", json=again), 403, "missing-scope")
        for name in ("web", "test"):
            refused = http.delete(f"/v1/connections/{name}")
            assert_problem(refused, 403, "missing-scope")
    with client("default", Scope.READ) as http:
        assert_problem(http.post("/v1/connections/web/test"), 403, "missing-scope")
        assert_problem(http.post("/v1/datasets", json=source), 403, "missing-scope")
    with client("theirs", *Scope) as http:
        assert http.get("/v1/connections").json()["items"] == []
        for method, path, sent in (
            ("GET", "/v1/connections/web", None),
            ("DELETE", "/v1/connections/web", None),
            ("POST", "/v1/connections/web/test", None),
            ("POST", "/v1/datasets", source),
        ):
            assert_problem(http.request(method, path, json=sent), 404, "not-found")
        assert http.post("/v1/connections", json=body).status_code == 201
    with client("default", *Scope) as http:
        lines = http.get("/v1/audit").json()["items"]
        told = [(line["action"], line["status"], line["made"]) for line in lines]
        assert ("POST /v1/datasets", 201, f"/v1/datasets/{made.json()['id']}") in told
        assert ("POST /v1/connections/{connection_id}/test", 200, None) in told
        web = http.get("/v1/connections/web").json()["id"]
        assert http.delete(f"/v1/connections/{web}").status_code == 204
        assert_problem(http.post("/v1/datasets", json=source), 404, "not-found")
        assert http.get(f"/v1/datasets/{made.json()['id']}").json()["source"] == source
        told = []
        until = time.monotonic() + 10
        while len(told) < 3:  # a line is written when its answer is complete
            assert time.monotonic() < until
            lines = http.get("/v1/audit").json()["items"]
            used = {f"/v1/connections/{web}", "/v1/datasets?connection=web"}
            told = [(line["subject"], line["status"]) for line in lines if line["subject"] in used]
        assert told == [
            ("/v1/datasets?connection=web", 404),
            (f"/v1/connections/{web}", 204),
            ("/v1/datasets?connection=web", 201),
        ]


def test_a_repeated_request_makes_one_dataset(places: Places) -> None:
    headers = {"Idempotency-Key": "import-1"}
    body = {"connection": "shop", "table": "orders"}
    made = [places.http.post("/v1/datasets", json=body, headers=headers) for _ in range(2)]
    assert made[0].json()["id"] == made[1].json()["id"]
    other = places.http.post("/v1/datasets", json=body | {"name": "x"}, headers=headers)
    assert_problem(other, 422, "idempotency-key-reused")


def test_columns_that_are_left_out_are_warned_of(places: Places) -> None:
    with psycopg.connect(f"{places.postgres.url}/shop") as other:
        other.execute("CREATE TABLE odd AS SELECT n, decode('00', 'hex') AS picture FROM orders")
        other.execute("GRANT SELECT ON odd TO reader")
    made = places.read(connection="shop", table="odd").json()
    assert made["columns"] == 1
    assert any("picture is not modelled" in warning for warning in made["warnings"])


def test_a_slow_host_delays_no_upload(places: Places) -> None:
    uploaded = threading.Event()

    def stall() -> Iterator[bytes]:
        uploaded.wait(2.0)
        yield _csv()

    places.web.pages["/tables/late.csv"] = Page(stall)
    answers: list[int] = []

    def ask() -> None:
        answers.append(places.read(connection="web", key="late.csv").status_code)

    callers = [threading.Thread(target=ask) for _ in range(4)]
    for caller in callers:
        caller.start()
    assert places.http.post("/v1/datasets", content=_csv(), headers=CSV).status_code == 201
    assert answers == []
    uploaded.set()
    for caller in callers:
        caller.join()
    assert answers == [201] * 4


@pytest.mark.slow
def test_a_million_rows_are_streamed(places: Places) -> None:
    with psycopg.connect(f"{places.postgres.url}/shop") as other:
        other.execute(
            "CREATE TABLE million AS SELECT i, i % 7 AS seven, i * 0.25 AS x, "
            "'word ' || i % 99 AS w FROM generate_series(1, 1000000) AS i"
        )
    most, over, others = 0, threading.Event(), inline_pids()  # of services of other tests, too

    def watch() -> None:
        nonlocal most
        while not over.wait(0.05):
            for pid in inline_pids() - others:
                try:
                    most = max(most, psutil.Process(pid).memory_full_info().uss)
                except psutil.NoSuchProcess:
                    continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    made = places.read(connection="owner", table="million", schema={"find_rules": False})
    over.set()
    watcher.join()
    assert made.json()["rows"] == 1_000_000
    assert most < 300e6
