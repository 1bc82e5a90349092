"""The whole way through the pages in a real browser, from an empty service to an empty one."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from catalog.records import Scope
from service.keyring import FRESH_SECONDS
from tests.claims import claim_job
from tests.long.browser.conftest import PHONE, Watched
from tests.running_service import Running

CSV = {"Content-Type": "text/csv"}
Watch = Callable[..., Watched]
POLLS = """performance.getEntriesByType("resource")
    .filter((entry) => entry.name.includes("/v1/jobs/")).map((entry) => entry.startTime).slice(1)"""
"""When the page asked for the job: once to be drawn, and then to follow it."""


def upload_example(watched: Watched) -> None:
    watched.go("/")
    watched.page.get_by_role("button", name="Use the example table").click()
    expect(watched.page.get_by_role("heading", level=1)).to_have_text("café orders")


def upload_part_of_example(watched: Watched, rows: int) -> None:
    """A small table by way of a file: its training and its report take less."""
    script = f"async () => (await import('/assets/example.js')).exampleTable({rows})"
    text = watched.page.evaluate(script)
    table = {"name": "café orders.csv", "mimeType": "text/csv", "buffer": text.encode()}
    watched.page.get_by_label("Upload a table").set_input_files(table)
    expect(watched.page.get_by_role("heading", level=1)).to_have_text("café orders")


def train_a_little(watched: Watched) -> None:
    """From a dataset's page to that of a ready model."""
    page = watched.page
    page.get_by_role("radio", name=re.compile("Quick preview")).check()
    page.get_by_text("More settings", exact=True).click()
    page.get_by_text("Privacy", exact=True).click()
    page.get_by_label("Maximum number of steps").fill("20")
    page.get_by_label("Share of rows kept unseen for the report").fill("0")
    page.get_by_label("Memorisation of individual rows").select_option("low")
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Training of café orders")
    expect(page.get_by_role("progressbar", name="Training, progress")).to_be_visible()
    page.get_by_role("link", name="Open model").wait_for()
    polled = page.evaluate(POLLS)
    assert all(later - sooner > 900 for sooner, later in pairwise(polled)), polled
    watched.assert_accessible()
    page.get_by_role("link", name="Open model").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("café orders")
    watched.assert_accessible()


def to_list(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Pages").get_by_role("link", name=name).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def section(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Sections of the model").get_by_text(name).click()


def test_a_table_goes_the_whole_way_through_the_pages(
    site: Running, watch: Watch, tmp_path: Path
) -> None:
    watched = watch(site, expected=("/report",))  # of which there is none at first
    page = watched.page
    watched.go("/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Upload a table to start")
    watched.assert_accessible()

    upload_part_of_example(watched, rows=400)
    page.get_by_label("Drop order from the model").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.get_by_text("total == quantity * price")).to_be_visible()
    watched.assert_accessible()
    page.get_by_label("Kind of rating").select_option("categorical")  # and not saved
    train_a_little(watched)
    (made,) = site.http.get("/v1/models").json()["items"]
    kinds = {one["name"]: one.get("kind") for one in made["schema"]["columns"]}
    assert kinds["rating"] == "categorical"
    assert made["training"]["memory"] == "low"

    section(page, "Generate rows")
    page.get_by_role("button", name="Add a condition").click()
    page.get_by_label("Column", exact=True).select_option("place")
    page.get_by_label("Station", exact=True).check()
    page.get_by_role("button", name="Preview").click()
    places = page.get_by_role("region", name="Synthetic rows").locator("td:nth-child(2)")
    expect(places).to_have_text(["Station"] * 12)
    prices = page.get_by_role("region", name="Synthetic rows").locator("td:nth-child(5)")
    assert len({len(price.split(".")[-1]) for price in prices.all_inner_texts()}) == 1
    watched.assert_accessible()
    page.get_by_label("Rows", exact=True).fill("90")
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Generate and download").click()
    drawn = Path(downloading.value.path()).read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(drawn)))
    assert len(rows) == 90
    assert {row["place"] for row in rows} == {"Station"}

    section(page, "Score rows")
    table = {"name": "drawn.csv", "mimeType": "text/csv", "buffer": drawn.encode()}
    page.get_by_label("Upload rows to score").set_input_files(table)
    expect(page.get_by_role("heading", name="90 rows scored")).to_be_visible()
    least = page.get_by_role("region", name="Most anomalous rows").get_by_role("row")
    expect(least).to_have_count(26)
    expect(least.nth(1)).to_contain_text("Station")
    expect(least.nth(1).locator("td.number").first).to_have_text(re.compile(r"^−\d+\.\d\d$"))
    watched.assert_accessible()

    lacking = pd.read_csv(io.StringIO(drawn)).drop(columns="place").to_csv(index=False)
    table = {"name": "lacking.csv", "mimeType": "text/csv", "buffer": lacking.encode()}
    page.get_by_label("Upload rows to score").set_input_files(table)
    expect(page.get_by_text("The table has no column place")).to_be_visible()

    section(page, "Impute missing values")
    blanks = drawn.replace("Station", "")
    table = {"name": "blanks.csv", "mimeType": "text/csv", "buffer": blanks.encode()}
    page.get_by_label("Upload a table with missing values").set_input_files(table)
    page.get_by_role("button", name="Impute missing values").click()
    expect(page.get_by_role("heading", name="90 rows imputed")).to_be_visible()
    filled = page.get_by_role("region", name="Imputed table").locator("tbody tr:first-child")
    expect(filled).to_contain_text(re.compile("Harbour|Station|Old town"))
    place = re.compile("Harbour|Station|Old town")
    expect(filled.locator("td.filled").filter(has_text=place)).to_have_count(1)
    watched.assert_accessible()

    section(page, "Dependencies")
    cell = page.get_by_label(re.compile(r"^quantity and total: 0\.\d+$"))
    expect(cell).to_be_visible()
    cell.hover()
    expect(page.get_by_text(re.compile(r"^quantity × total: 0\.\d"))).to_be_visible()
    watched.assert_accessible()
    section(page, "Real vs synthetic")
    expect(page.get_by_role("img", name="Shares of temperature")).to_be_visible()
    watched.assert_accessible()

    section(page, "Report")
    page.get_by_role("button", name="Make report").click()
    expect(page.get_by_role("heading", name="Privacy")).to_be_visible()
    page.get_by_text("Rules", exact=True).click()
    rules = page.get_by_role("region", name="Rules")
    expect(rules).to_contain_text("total == quantity * price")
    watched.assert_accessible()

    for scoring, told in (
        ("flag", "of 90 rows are rare"),
        ("off", "Scoring is off for this model"),
    ):
        site.http.patch(f"/v1/models/{made['id']}", json={"scoring": scoring})
        watched.go(f"/models/{made['id']}/score")
        if scoring == "flag":
            table = {"name": "drawn.csv", "mimeType": "text/csv", "buffer": drawn.encode()}
            page.get_by_label("Upload rows to score").set_input_files(table)
        expect(page.get_by_role("heading", name=told)).to_be_visible()
        watched.assert_accessible()

    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete model").click()
    expect(page.get_by_role("heading", name="No models yet")).to_be_visible()
    to_list(page, "Datasets")
    [dataset] = site.http.get("/v1/datasets").json()["items"]
    cap = {"cap": {"epsilon": 3, "delta": 1e-6}}
    site.http.put(f"/v1/datasets/{dataset['id']}/privacy", json=cap)
    page.get_by_role("link", name="café orders").click()
    spent = page.get_by_role("region", name="Differential privacy")
    expect(spent).to_contain_text("epsilon 3 at delta 1.0e−6")
    watched.assert_accessible()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete dataset").click()
    expect(page.get_by_role("heading", name="No datasets yet")).to_be_visible()
    assert site.http.get("/v1/datasets").json()["items"] == []


def test_a_wrong_table_is_told_in_full_and_leaves_the_way_in_open(
    site: Running, watch: Watch
) -> None:
    watched = watch(site, expected=("name=ragged",))
    watched.go("/")
    table = {"name": "ragged.csv", "mimeType": "text/csv", "buffer": b"a,b\n1,2\n3,4,5\n"}
    watched.page.get_by_label("Upload a table").set_input_files(table)
    alert = watched.page.get_by_role("alert")
    expect(alert).to_contain_text("line 3")
    expect(watched.page.get_by_role("button", name="Choose files")).to_be_visible()
    watched.assert_accessible()


def test_a_hard_rule_that_is_refused_is_told_beside_its_rule_and_the_choice_stays(
    site: Running, watch: Watch
) -> None:
    bills = [(i * 37 % 91, i * 53 % 29, 17 if i == 44 else 0) for i in range(200)]
    lines = "\n".join(f"{net},{tax},{net + tax + odd}" for net, tax, odd in bills)
    headers = {"Content-Type": "text/csv"}
    content = f"net,tax,total\n{lines}\n".encode()
    dataset = site.http.post("/v1/datasets?name=bills", content=content, headers=headers).json()
    watched = watch(site, expected=(f"{dataset['id']}/schema",))
    watched.go(f"/datasets/{dataset['id']}")
    rule = watched.page.get_by_role("listitem").filter(has_text="total == net + tax")
    rule.get_by_text("Hard", exact=True).click()
    expect(rule.get_by_role("alert")).to_contain_text("line 46")
    expect(rule.get_by_role("alert")).to_be_in_viewport()
    expect(rule.get_by_role("radio", name="Soft")).to_be_checked()
    watched.assert_accessible()


def test_what_is_not_there_is_told_with_a_way_out(site: Running, watch: Watch) -> None:
    missing = ("/v1/models/mdl_0", "/v1/datasets/ds_0", "/v1/jobs/job_0")
    watched = watch(site, expected=missing, color_scheme="dark")
    for path in ("/models/mdl_0", "/datasets/ds_0", "/jobs/job_0"):
        watched.go(path)
        expect(watched.page.get_by_role("heading", name="Not found")).to_be_visible()
    watched.assert_accessible()
    watched.page.get_by_role("link", name="Go to the home page").click()
    expect(watched.page).to_have_url(f"{site.url}/")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_every_list_and_the_way_in(site: Running, watch: Watch, scheme: str) -> None:
    watched = watch(site, viewport=PHONE, color_scheme=scheme, has_touch=True)
    upload_example(watched)
    expect(watched.page.get_by_role("heading", name="Rules", exact=True)).to_be_visible()
    watched.assert_well()
    watched.assert_accessible()
    for name in ("Datasets", "Models", "Jobs"):
        to_list(watched.page, name)
        watched.assert_well()
        watched.assert_accessible()


def test_an_operator_sees_queues_workers_and_leases(guarded: Running, watch: Watch) -> None:
    watched = watch(guarded, color_scheme="dark")
    page = watched.page
    dataset = guarded.http.post("/v1/datasets", content=b"a\n" + b"1\n2\n" * 40, headers=CSV).json()
    jobs = [
        guarded.http.post("/v1/models", json={"dataset_id": dataset["id"]}).json() for _ in "ab"
    ]
    watched.go("/jobs")
    page.get_by_role("link", name="Queues and workers").click()
    expect(page.get_by_role("heading", name="No worker is running")).to_be_visible()
    watched.assert_accessible()
    guarded.catalog.workers.seen("host/7", "0.1.0", ["CPU: train, compute"])
    assert claim_job(guarded.catalog, jobs[0]["job_id"], "host/9/ab", 60) is not None
    leases = page.get_by_role("region", name="Running jobs", exact=True)
    expect(leases).to_contain_text(jobs[0]["job_id"])
    expect(leases).to_contain_text("host/9")
    expect(page.get_by_role("region", name="Workers", exact=True)).to_contain_text("alive")
    watched.assert_well()
    page.set_viewport_size(PHONE)
    watched.assert_accessible()


def test_the_first_paint_comes_within_a_second(site: Running, watch: Watch) -> None:
    watched = watch(site)
    watched.go("/")
    watched.page.get_by_role("heading", level=1).wait_for()
    painted = watched.page.evaluate(
        "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    )
    assert painted < 1000


def test_with_keys_a_page_asks_for_one_and_forgets_it(guarded: Running, watch: Watch) -> None:
    key, written = guarded.catalog.keys.create("acme", "pages", [Scope.READ, Scope.WRITE])
    watched = watch(guarded, expected=("/v1/session", "brief=true&limit=25"))
    page = watched.page
    watched.go("/datasets")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    watched.assert_accessible()
    page.get_by_label("API key").fill(written[:-2])
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("does not belong to this service")
    page.get_by_label("API key").fill(written)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Datasets")
    upload_example(watched)
    expect(page.get_by_text("acme")).to_be_visible()
    kept = page.evaluate(
        "JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])"
    )
    assert written not in kept
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.get_by_label("API key").fill(written)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Home")
    guarded.catalog.keys.revoke(key.id)
    time.sleep(FRESH_SECONDS)
    page.get_by_role("link", name="Models", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_a_key_that_may_only_read_sees_which_scope_a_button_needs(
    guarded: Running, watch: Watch
) -> None:
    _, written = guarded.catalog.keys.create("acme", "reader", [Scope.READ])
    watched = watch(guarded, expected=("/v1/session", "/v1/jobs?status=running&limit=10"))
    page = watched.page
    watched.go("/sign-in")
    page.get_by_label("API key").fill(written)
    page.get_by_role("button", name="Sign in").click()
    for name in ("Choose files", "Use the example table"):
        button = page.get_by_role("button", name=name)
        expect(button).to_be_disabled()
        expect(button).to_have_attribute("title", re.compile("“write”"))
