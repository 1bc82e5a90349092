"""The page of connections, and the form that reads a table from one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from playwright.sync_api import expect

from tests.gcvae_cli.test_sources import table
from tests.long.browser.conftest import PHONE, Watched
from tests.running_service import OUTSIDE, Running, running, settings_in, train, working
from tests.servers.servers import PostgresServer


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        url = server.create_database("shop").replace("postgresql", "postgresql+psycopg")
        engine = sa.create_engine(url)
        table().to_sql("orders", engine, index=False)
        engine.dispose()
        yield server


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    with running(settings_in(tmp_path, **OUTSIDE)) as found:
        yield found


@pytest.mark.parametrize("look", [{}, {"viewport": PHONE, "color_scheme": "dark"}])
def test_a_connection_is_added_tested_read_and_deleted(
    watch: Callable[..., Watched],
    service: Running,
    postgres: PostgresServer,
    look: dict[str, object],
) -> None:
    watched = watch(service, expected=("/v1/connections", "/v1/datasets"), **look)
    page = watched.page
    watched.go("/datasets")
    page.get_by_role("link", name="Connections").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Connections")
    expect(page.get_by_text("There are no connections.")).to_be_visible()

    page.get_by_label("Name").fill("shop")
    page.get_by_label("URL").fill("postgresql://gcvae@example.com/shop")
    page.get_by_role("button", name="Add connection").click()
    expect(page.get_by_role("alert")).to_contain_text("host 'example.com' is not allowed")

    page.get_by_label("URL").fill(f"postgresql://gcvae@127.0.0.1:{postgres.port}/shop")
    page.get_by_label("Password").fill("very-secret-word")
    page.get_by_role("button", name="Add connection").click()
    expect(page.get_by_role("heading", name="shop")).to_be_visible()
    assert "very-secret-word" not in page.content()
    assert page.get_by_label("Password").input_value() == ""

    page.get_by_role("button", name="Test").click()
    expect(page.get_by_text("The connection works. It has 1 table: orders.")).to_be_visible()
    watched.assert_accessible()

    watched.go("/")
    page.get_by_label("Table name, SQL query or file path").fill("order")
    page.get_by_role("button", name="Read table").click()
    expect(page.get_by_role("alert")).to_contain_text("the database has no table 'order'")
    watched.assert_accessible()
    page.get_by_label("Table name, SQL query or file path").fill("orders")
    page.get_by_role("button", name="Read table").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("orders")

    watched.go("/connections")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("There are no connections.")).to_be_visible()
    watched.assert_well()


@pytest.mark.parametrize("look", [{}, {"viewport": PHONE, "color_scheme": "dark"}])
def test_generated_rows_are_written_to_a_connection(
    watch: Callable[..., Watched],
    service: Running,
    postgres: PostgresServer,
    look: dict[str, object],
) -> None:
    model = train(service, table().to_csv(index=False).encode())
    watched = watch(service, expected=("/export",), **look)
    page = watched.page
    watched.go(f"/models/{model['id']}/sample")
    expect(page.get_by_role("button", name="Generate and download")).to_be_visible()
    expect(page.get_by_role("button", name="Generate and write")).to_have_count(0)
    url = f"postgresql://gcvae@127.0.0.1:{postgres.port}/shop"
    for name, place in (("web", "http://127.0.0.1/"), ("shop", url)):
        made = service.http.post("/v1/connections", json={"name": name, "url": place})
        assert made.status_code == 201, made.text

    watched.go(f"/models/{model['id']}/sample")
    assert page.get_by_label("Write the rows to").inner_text().split() == ["shop"]
    page.get_by_label("Rows", exact=True).fill("30")
    page.get_by_label("Table or path").fill("orders")
    with working(service):
        page.get_by_role("button", name="Generate and write").click()
        expect(page.get_by_role("alert")).to_contain_text("the database has the table 'orders'")
        watched.assert_accessible()
        name = f"drawn_{len(look)}"
        page.get_by_label("Table or path").fill(name)
        page.get_by_role("button", name="Generate and write").click()
        expect(page.get_by_text("30 synthetic rows written to shop.")).to_be_visible()
    engine = sa.create_engine(url.replace("postgresql", "postgresql+psycopg"))
    with engine.connect() as connection:
        assert connection.scalar(sa.text(f"SELECT count(*) FROM {name}")) == 30
    engine.dispose()
    watched.assert_well()
