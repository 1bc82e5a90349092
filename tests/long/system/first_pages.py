"""What new users do on the pages that ends in an error."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page

from tests.long.system.first_tables import Place


def upload(table: str) -> Callable[[Page, Place], None]:
    """Drops a table on the start page."""

    def act(page: Page, place: Place) -> None:
        page.goto(place.names["U"])
        page.get_by_label("Upload a table").set_input_files(place.folder / table)

    return act


def score(table: str) -> Callable[[Page, Place], None]:
    """Drops a table on the page of scores."""

    def act(page: Page, place: Place) -> None:
        page.goto(f"{place.names['U']}/models/{place.names['M']}/score")
        page.get_by_label("Upload rows to score").set_input_files(place.folder / table)

    return act


def draw(rows: str) -> Callable[[Page, Place], None]:
    """Asks for so many rows."""

    def act(page: Page, place: Place) -> None:
        page.goto(f"{place.names['U']}/models/{place.names['M']}/sample")
        page.get_by_label("Rows", exact=True).fill(rows)
        page.get_by_role("button", name="Generate and download").click()

    return act


def draw_given(column: str, lowest: str) -> Callable[[Page, Place], None]:
    """Asks for rows from a lowest value of a column on."""

    def act(page: Page, place: Place) -> None:
        page.goto(f"{place.names['U']}/models/{place.names['M']}/sample")
        page.get_by_role("button", name="Add a condition").click()
        page.get_by_label("Column", exact=True).select_option(column)
        page.get_by_label(f"lowest of {column}").fill(lowest)
        page.get_by_role("button", name="Preview").click()

    return act


def sign_in(key: str) -> Callable[[Page, Place], None]:
    """Gives a key on the page that asks for one."""

    def act(page: Page, place: Place) -> None:
        page.goto(place.names["K"])
        page.get_by_label("API key").fill(key)
        page.get_by_role("button", name="Sign in").click()

    return act


def upload_with_read_key(page: Page, place: Place) -> None:
    """Drops a table where the key that signed in may read alone."""
    sign_in((place.folder / "read.key").read_text().strip())(page, place)
    page.get_by_label("Upload a table").set_input_files(place.folder / "cars.csv")


def look_at(path: str) -> Callable[[Page, Place], None]:
    """Opens a page."""

    def act(page: Page, place: Place) -> None:
        page.goto(place.names["U"] + place.filled(path))

    return act
