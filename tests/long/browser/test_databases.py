"""Pages of a database: several files, the diagram of its tables, a model of it, drawn tables."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import expect

from tests.gcvae.linked.shop import shop
from tests.long.browser.conftest import PHONE, Watched
from tests.running_service import Running

Watch = Callable[..., Watched]


@pytest.fixture(scope="module", autouse=True)
def emptied(site: Running) -> Iterator[None]:
    """Other modules begin with an empty service."""
    yield
    for kind in ("models", "datasets"):
        for item in site.http.get(f"/v1/{kind}").json()["items"]:
            site.http.delete(f"/v1/{kind}/{item['id']}").raise_for_status()


@pytest.fixture(scope="module")
def files() -> list[dict[str, object]]:
    """The files of a shop: products, customers, orders, lines."""
    csv = {name: frame.to_csv(index=False).encode() for name, frame in shop(60).items()}
    return [
        {"name": f"{name}.csv", "mimeType": "text/csv", "buffer": content}
        for name, content in csv.items()
    ]


@pytest.fixture(scope="module")
def dataset_id(site: Running, files: list[dict[str, object]]) -> str:
    parts = [("file", (file["name"], file["buffer"])) for file in files]
    answer = site.http.post("/v1/datasets", files=parts, data={"name": "shop"}, timeout=120)
    return str(answer.json()["id"])


def test_a_database_is_uploaded_corrected_trained_and_drawn(
    site: Running, watch: Watch, files: list[dict[str, object]], tmp_path: Path
) -> None:
    watched = watch(site)
    page = watched.page
    watched.go("/")
    page.get_by_label("Upload a table").set_input_files(files)
    expect(page).to_have_url(re.compile(r"/datasets/ds_"))
    diagram = page.get_by_role("group", name="Tables and their keys")
    expect(diagram.get_by_role("region")).to_have_count(4)
    expect(diagram.get_by_role("region", name="Table orders")).to_contain_text("→ customers")
    expect(diagram.locator(".links path").first).to_be_attached()
    page.get_by_text("Keys of orders").click()
    expect(
        page.get_by_label("Column that orders the rows under the same parent row").nth(2)
    ).to_have_value("ordered")
    page.get_by_label("The table is").nth(2).select_option("true")
    page.get_by_role("button", name="Save", exact=True).locator("visible=true").click()
    expect(page.get_by_text("table 'orders': keep is true")).to_be_visible()
    page.get_by_text("Keys of orders").click()
    page.get_by_label("The table is").nth(2).select_option("false")
    page.get_by_role("button", name="Save", exact=True).locator("visible=true").click()
    expect(page.get_by_text("table 'orders': keep is false (it was true)")).to_be_visible()
    watched.assert_accessible()
    page.get_by_text("More settings").click()
    page.get_by_label("Maximum number of steps").fill("20")
    page.get_by_label("Quick preview").check()
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page.get_by_text("The model is ready.")).to_be_visible()
    watched.assert_accessible()
    page.get_by_role("link", name="Open model").click()
    expect(page.get_by_text("given its row of customers").first).to_be_visible()
    watched.assert_accessible()
    page.get_by_role("link", name="Generate tables").click()
    page.get_by_label("Size relative to the real tables (1: as many rows)").fill("2")
    page.get_by_label("Seed").fill("1")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("region", name="Synthetic rows of customers")).to_be_visible()
    watched.assert_accessible()
    page.set_viewport_size(PHONE)
    watched.assert_well()
    watched.assert_accessible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Generate and download").click()
    path = tmp_path / "drawn.zip"
    download.value.save_as(path)
    with zipfile.ZipFile(path) as archive:
        drawn = {
            name: pd.read_csv(io.BytesIO(archive.read(f"{name}.csv")))
            for name in ("customers", "orders", "lines")
        }
    assert len(drawn["customers"]) == 120
    assert drawn["lines"]["order_id"].isin(drawn["orders"]["order_id"]).all()
    page.get_by_role("link", name="Impute missing values").click()
    page.get_by_label("Upload tables with missing values").set_input_files(path)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download tables").click()
    with zipfile.ZipFile(download.value.path()) as archive:
        assert len(archive.namelist()) == len(files)
    watched.assert_accessible()


def test_dirty_references_are_told_and_left_out_if_you_choose(
    site: Running, watch: Watch, files: list[dict[str, object]]
) -> None:
    watched = watch(site, expected=("/v1/datasets?",))
    watched.go("/")
    lines = next(file for file in files if file["name"] == "lines.csv")
    dirty = lines | {"buffer": bytes(lines["buffer"]) + b"99,1,2.5,1\n"}  # type: ignore[call-overload]
    some = [dirty if file is lines else file for file in files]
    watched.page.get_by_label("Upload a table").set_input_files(some)
    expect(watched.page.get_by_role("alert")).to_contain_text("rows that do not exist: 99")
    watched.assert_accessible()
    watched.page.get_by_role("button", name="remove these rows").click()
    expect(watched.page.get_by_text("they are removed")).to_be_visible()


BEHIND = """() => {
    const all = (selector) => [...document.querySelectorAll(selector)];
    const boxes = all(".table-box").map((b) => b.getBoundingClientRect());
    const at = document.querySelector(".links").getBoundingClientRect();
    const steps = Array.from({ length: 101 }, (_, i) => i / 100);
    return all(".links path").filter((path) =>
        steps.map((step) => path.getPointAtLength(step * path.getTotalLength()))
            .some(({ x, y }) => boxes.some((b) => x + at.x > b.left + 2 && x + at.x < b.right - 2
                && y + at.y > b.top + 2 && y + at.y < b.bottom - 2))).length;
}"""
"""How many lines of the diagram pass behind a table."""


def test_no_line_of_the_diagram_passes_behind_a_table(site: Running, watch: Watch) -> None:
    tables = shop(60)
    buyer = tables["orders"].set_index("order_id")["customer_id"]
    tables["lines"]["customer_id"] = tables["lines"]["order_id"].map(buyer)
    csv = [("file", (f"{name}.csv", t.to_csv(index=False).encode())) for name, t in tables.items()]
    answer = site.http.post("/v1/datasets", files=csv, data={"name": "long"}, timeout=120)
    for size in (PHONE, {"width": 1280, "height": 900}):
        watched = watch(site, viewport=size)
        watched.go(f"/datasets/{answer.json()['id']}")
        lines = watched.page.get_by_role("region", name="Table lines")
        expect(lines).to_contain_text("→ customers")
        expect(watched.page.locator(".links path").first).to_be_attached()
        assert watched.page.evaluate(BEHIND) == 0
        watched.assert_accessible()


@pytest.mark.parametrize("color_scheme", ["light", "dark"])
def test_the_diagram_is_legible_on_a_phone(
    site: Running, watch: Watch, dataset_id: str, color_scheme: str
) -> None:
    for size in (PHONE, {"width": 1280, "height": 900}):
        watched = watch(site, color_scheme=color_scheme, viewport=size)
        watched.go(f"/datasets/{dataset_id}")
        expect(watched.page.get_by_role("region", name="Table lines")).to_be_visible()
        box = watched.page.get_by_role("region", name="Table lines").bounding_box()
        assert box is not None
        assert box["width"] >= 200
        watched.page.get_by_text("Keys of orders").click()
        watched.page.get_by_text("First 20 rows of orders").click()
        expect(watched.page.get_by_role("region", name="First rows")).to_be_visible()
        watched.assert_well()
        watched.assert_accessible()
