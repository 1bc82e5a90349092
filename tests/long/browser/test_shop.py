"""Pages of a table with blanks, hard rules, words for yes and no, and many levels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.long.browser.conftest import PHONE, Watched
from tests.running_service import Running

Watch = Callable[..., Watched]
DAYS = [f"2025-{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 29)]


def orders() -> str:
    """300 orders: one in four is not shipped yet, and 100 customers come again and again."""
    lines = [
        f"{DAYS[i]},{DAYS[i + i % 9] if i % 4 else ''},{'yes' if i * 7 % 3 else 'no'},"
        f"C{i * 37 % 100:03},{'ABC'[i * 5 % 3]},{i * 53 % 97 + 3}"
        for i in range(300)
    ]
    return "\n".join(["ordered,shipped,paid,customer,product,amount", *lines, ""])


@pytest.fixture(scope="module", autouse=True)
def emptied(site: Running) -> Iterator[None]:
    """Other modules begin with an empty service."""
    yield
    for kind in ("models", "datasets"):
        for item in site.http.get(f"/v1/{kind}").json()["items"]:
            site.http.delete(f"/v1/{kind}/{item['id']}").raise_for_status()


@pytest.fixture(scope="module")
def trained(site: Running) -> tuple[str, str]:
    """(Dataset, model) of the orders, with a hard rule."""
    csv = {"Content-Type": "text/csv"}
    content = orders().encode()
    dataset = site.http.post("/v1/datasets?name=shop", content=content, headers=csv, timeout=120)
    dataset_id = dataset.json()["id"]
    hard_rule = {"rule": "ordered <= shipped", "keep": "hard"}
    schema = {"columns": [], "rules": [hard_rule], "find_rules": True}
    site.http.put(f"/v1/datasets/{dataset_id}/schema", json=schema, timeout=120).raise_for_status()
    training = {"preset": "fast", "max_steps": 20, "report_share": 0}
    return dataset_id, train(site, dataset_id, **training)


def train(site: Running, dataset_id: str, **training: object) -> str:
    """The id of a model, once it is ready."""
    asked = {"dataset_id": dataset_id, "training": training}
    model = site.http.post("/v1/models", json=asked).json()
    for _ in range(600):
        if site.http.get(f"/v1/jobs/{model['job_id']}").json()["status"] == "succeeded":
            break
        site.http.get(f"/v1/jobs/{model['job_id']}/events", timeout=120)
    return str(model["id"])


def file_of(text: str) -> dict[str, object]:
    return {"name": "rows.csv", "mimeType": "text/csv", "buffer": text.encode()}


def test_the_hard_rules_are_no_column_of_scored_rows(
    site: Running, trained: tuple[str, str], watch: Watch
) -> None:
    watched = watch(site)
    watched.go(f"/models/{trained[1]}/score")
    lines = orders().splitlines()
    broken = [*lines[:9], "2025-03-01,2025-02-01,yes,C000,A,50"]
    watched.page.get_by_label("Upload rows to score").set_input_files(file_of("\n".join(broken)))
    expect(watched.page.get_by_text("1 row breaks a hard rule")).to_be_visible()
    least = watched.page.get_by_role("region", name="Most anomalous rows").get_by_role("table")
    expect(least.get_by_role("columnheader")).to_have_count(4 + 5)  # customers are identifiers
    expect(least).not_to_contain_text("(hard rules)")
    expect(least.get_by_role("row").nth(1)).to_contain_text("−∞")
    expect(watched.page.get_by_text("The table has no column")).to_have_count(0)
    watched.assert_accessible()


def test_blanks_that_may_be_right_are_filled_only_where_their_column_is_chosen(
    site: Running, trained: tuple[str, str], watch: Watch
) -> None:
    watched = watch(site)
    page = watched.page
    watched.go(f"/models/{trained[1]}/impute")
    text = "\n".join(orders().splitlines()[:9]).replace(",A,", ",,")
    page.get_by_label("Upload a table with missing values").set_input_files(file_of(text))
    expect(page.get_by_label("product")).to_be_checked()
    expect(page.get_by_label("shipped")).not_to_be_checked()
    watched.assert_accessible()
    page.get_by_role("button", name="Impute missing values").click()
    filled = page.get_by_role("region", name="Imputed table")
    expect(filled.locator("td.filled")).to_have_count(3)
    expect(filled.get_by_text("missing", exact=True)).to_have_count(2)

    page.get_by_label("Upload a table with missing values").set_input_files(file_of(text))
    page.get_by_label("product").uncheck()
    expect(page.get_by_role("button", name="Impute missing values")).to_be_disabled()
    expect(page.get_by_text("Choose at least one column.")).to_be_visible()
    page.get_by_label("shipped").check()
    page.get_by_role("button", name="Impute missing values").click()
    expect(filled.locator("td.filled")).to_have_count(2)
    expect(filled.get_by_text("missing", exact=True)).to_have_count(3)


def test_drawn_rows_may_be_asked_missing_and_a_refusal_takes_the_success_away(
    site: Running, trained: tuple[str, str], watch: Watch
) -> None:
    watched = watch(site, expected=("/samples",), viewport=PHONE)
    page = watched.page
    watched.go(f"/models/{trained[1]}/sample")
    page.get_by_role("button", name="Add a condition").click()
    page.get_by_label("Column", exact=True).select_option("amount")
    expect(page.get_by_label("is missing")).to_have_count(0)
    page.get_by_label("Column", exact=True).select_option("shipped")
    page.get_by_label("is missing").check()
    page.get_by_role("button", name="Preview").click()
    drawn = page.get_by_role("region", name="Synthetic rows")
    expect(drawn.locator("td:nth-child(2)")).to_have_text(["missing"] * 12)
    paid = drawn.locator("td:nth-child(3)")
    assert set(paid.all_inner_texts()) <= {"yes", "no"}
    page.get_by_label("Rows", exact=True).fill("100000000000")
    page.get_by_role("button", name="Generate and download").click()
    expect(page.get_by_role("alert")).to_be_in_viewport()
    expect(drawn).to_have_count(0)


def test_a_refused_change_takes_the_success_before_it_away(
    site: Running, trained: tuple[str, str], watch: Watch
) -> None:
    watched = watch(site, expected=("/schema",))
    page = watched.page
    watched.go(f"/datasets/{trained[0]}")
    region = page.get_by_role("region", name="Rules", exact=True)
    with page.expect_response(re.compile("/profile")):
        region.get_by_role("button", name="Infer rules again").click()
        expect(page.get_by_text("Saving: the service reads")).to_be_visible()
    expect(page.get_by_text("Saved")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Distribution of paid: yes"))).to_be_visible()
    region.get_by_label("Rule", exact=True).fill("amount >= customer")
    region.get_by_role("button", name="Add rule").click()
    expect(region.get_by_role("alert")).to_be_visible()
    expect(page.get_by_text("Saved")).to_have_count(0)
    region.get_by_label("Rule", exact=True).fill("is_missing(amount) if is_missing(shipped)")
    region.get_by_role("button", name="Add rule").click()
    expect(region.get_by_role("listitem").filter(has_text="amount is missing")).to_be_visible()


def test_two_models_of_a_table_stand_side_by_side(
    site: Running, trained: tuple[str, str], watch: Watch
) -> None:
    watched = watch(site, viewport=PHONE)
    page = watched.page
    other = train(site, trained[0], preset="fast", max_steps=5, report_share=0, memory="low")
    watched.go(f"/datasets/{trained[0]}")
    page.get_by_role("button", name="Compare models").click()
    table = page.get_by_role("region", name="Models side by side")
    memory = table.get_by_role("row").filter(has_text="Memorisation").get_by_role("cell")
    expect(memory).to_have_text(["Setting: memorisation of individual rows", "normal", "low"])
    expect(table.get_by_role("columnheader")).to_have_count(3)
    watched.assert_accessible()
    site.http.delete(f"/v1/models/{other}").raise_for_status()


def test_the_names_of_a_map_keep_their_size_on_a_phone(
    site: Running, trained: tuple[str, str], watch: Watch
) -> None:
    watched = watch(site, viewport=PHONE, color_scheme="dark")
    watched.go(f"/models/{trained[1]}/dependencies")
    name = watched.page.get_by_role("group", name="Map of").get_by_text("product", exact=True)
    box = name.last.bounding_box()
    assert box is not None
    assert box["height"] > 11
    watched.assert_accessible()


def test_the_models_of_a_table_stand_beside_each_other(
    site: Running, trained: tuple[str, str], watch: Watch
) -> None:
    watched = watch(site)
    watched.go(f"/datasets/{trained[0]}")
    models = watched.page.get_by_role("region", name="Models of this dataset")
    expect(models.get_by_role("row").nth(1)).to_contain_text("fast")
    expect(models.get_by_role("row").nth(1)).to_contain_text("Ready")
    expect(models.get_by_role("columnheader")).to_have_count(5)  # none was reported on


def test_the_first_rows_are_shown_and_a_name_can_be_changed(
    site: Running, trained: tuple[str, str], watch: Watch
) -> None:
    watched = watch(site, viewport=PHONE)
    page = watched.page
    watched.go(f"/datasets/{trained[0]}")
    page.get_by_text("First 20 rows").click()
    rows = page.get_by_role("region", name="First rows").get_by_role("row")
    expect(rows).to_have_count(21)
    expect(rows.nth(1)).to_contain_text("2025-01-01")
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Name", exact=True).fill("the shop")
    page.get_by_role("button", name="Save name").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("the shop")
    watched.assert_accessible()
    watched.go(f"/models/{trained[1]}")
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Name", exact=True).fill("of the shop")
    page.get_by_role("button", name="Save name").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("of the shop")
    watched.go("/jobs")
    expect(page.get_by_role("link", name="Training of of the shop")).to_be_visible()


def test_a_table_in_another_encoding_is_taken_with_its_name(site: Running, watch: Watch) -> None:
    watched = watch(site, expected=("name=towns",))
    page = watched.page
    watched.go("/")
    towns = "town,n\n" + "".join(f"{'Málaga' if i % 2 else 'Köln'},{i}\n" for i in range(60))
    table = {"name": "towns.csv", "mimeType": "text/csv", "buffer": towns.encode("cp1252")}
    page.get_by_label("Upload a table").set_input_files(table)
    expect(page.get_by_role("alert")).to_contain_text("encoding")
    page.get_by_label("Text encoding of CSV files").fill("cp1252")
    watched.assert_accessible()
    page.get_by_label("Upload a table").set_input_files(table)
    expect(page.get_by_role("heading", level=1)).to_have_text("towns")


def test_a_training_may_be_private_and_its_refusal_is_told_after_columns_are_saved(
    site: Running, trained: tuple[str, str], watch: Watch
) -> None:
    watched = watch(site, expected=("/v1/models",))
    page = watched.page
    watched.go(f"/datasets/{trained[0]}")
    form = page.get_by_role("region", name="Train a model")
    form.get_by_text("Privacy", exact=True).click()
    page.get_by_label("Differential privacy: epsilon").fill("0")
    page.get_by_label("Column that you want to predict later").select_option("paid")
    watched.assert_accessible()
    page.get_by_label("Kind of product").select_option("ordinal")
    with page.expect_request("**/v1/models") as asking:
        page.get_by_role("button", name="Train", exact=True).click()
    private = asking.value.post_data_json["training"]["differential_privacy"]
    assert private == {"epsilon": 0, "delta": 1e-6, "target": "paid"}
    expect(form.get_by_role("alert")).to_contain_text("epsilon")
    expect(page.get_by_label("Kind of product")).to_have_value("ordinal")
    expect(page.get_by_label("Differential privacy: epsilon")).to_have_value("0")
    expect(page.get_by_text("Saved")).to_have_count(0)


def test_a_failed_private_training_names_each_column_that_is_not_declared(
    site: Running, trained: tuple[str, str], watch: Watch
) -> None:
    watched = watch(site, viewport=PHONE)
    private = {"differential_privacy": {"epsilon": 3, "delta": 1e-6}}
    asked = {"dataset_id": trained[0], "training": {"preset": "fast", **private}}
    watched.go(f"/jobs/{site.http.post('/v1/models', json=asked).json()['job_id']}")
    alert = watched.page.get_by_role("alert")
    undeclared = alert.get_by_role("listitem").filter(has_text="must be declared")
    expect(undeclared.nth(5)).to_be_visible()
    expect(alert.get_by_role("heading")).to_be_in_viewport()
    expect(alert.get_by_role("link", name="Go to the dataset")).to_be_visible()
    watched.assert_accessible()


def test_dates_are_dates_and_yes_is_yes_without_the_dataset(
    site: Running, trained: tuple[str, str], watch: Watch
) -> None:
    watched = watch(site)
    page = watched.page
    site.http.delete(f"/v1/datasets/{trained[0]}").raise_for_status()
    watched.go(f"/models/{trained[1]}/compare")
    dates = page.get_by_role("img", name="Shares of ordered")
    expect(dates).to_contain_text(re.compile(r"2025-\d\d-\d\d"))
    expect(dates).not_to_contain_text("e+")
    expect(page.get_by_role("img", name="Shares of paid")).to_contain_text("yes")


@pytest.fixture(scope="module")
def flown(site: Running) -> tuple[str, str]:
    """(Dataset, model) of 800 flights, most of which few flights share the plane with."""
    lines = [
        f"N{10_000 + i * 7919 % 261 if i % 20 else 7}AA,{DAYS[i % 300]} {i % 24:02}:00:00,{i % 97}"
        for i in range(800)
    ]
    content = "\n".join(["tail_number,scheduled_departure_time,minutes", *lines, ""]).encode()
    csv = {"Content-Type": "text/csv"}
    dataset = site.http.post("/v1/datasets?name=flights", content=content, headers=csv, timeout=120)
    dataset_id = dataset.json()["id"]
    return dataset_id, train(site, dataset_id, preset="fast", max_steps=20, report_share=0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_of_the_columns_of_a_dataset(
    site: Running, flown: tuple[str, str], watch: Watch, scheme: str
) -> None:
    watched = watch(site, viewport=PHONE, color_scheme=scheme)
    watched.go(f"/datasets/{flown[0]}")
    drop = watched.page.get_by_label("Drop tail_number from the model")
    drop.scroll_into_view_if_needed()
    expect(drop).to_be_in_viewport(ratio=1)
    expect(watched.page.get_by_text("come out as frequent ones or, if they fill")).to_be_visible()
    watched.assert_accessible()


def test_suppressed_categories_are_shown_with_their_share_and_the_reason(
    site: Running, flown: tuple[str, str], watch: Watch
) -> None:
    watched = watch(site)
    watched.go(f"/models/{flown[1]}/compare")
    card = watched.page.get_by_role("figure").filter(has_text="tail_number")
    expect(card.get_by_role("img")).to_contain_text("(other)")
    expect(card).to_contain_text("too few rows have")
    watched.assert_accessible()


@pytest.mark.parametrize(
    ("place", "label"), [("score", "Upload rows to score"), ("impute", "Upload a table with")]
)
def test_rows_in_another_encoding_than_utf8_are_read_when_it_is_named(
    site: Running, trained: tuple[str, str], watch: Watch, place: str, label: str
) -> None:
    watched = watch(site, expected=("/scores?format=json", "draws=1"))
    page = watched.page
    watched.go(f"/models/{trained[1]}/{place}")
    content = "ordered,shipped,paid,customer,product,amount\n2025-01-02,,yes,C001,Ä,\n"
    file = {"name": "rows.csv", "mimeType": "text/csv", "buffer": content.encode("cp1252")}
    page.get_by_label("Text encoding of CSV files").fill("cp1252")
    page.get_by_label(label).set_input_files([file])
    if place == "impute":
        page.get_by_role("button", name="Impute missing values").click()
    expect(page.get_by_role("table").get_by_text("Ä", exact=True)).to_be_visible()
    watched.assert_accessible()
