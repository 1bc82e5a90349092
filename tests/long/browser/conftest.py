"""A real browser before a real service: what it complains of, and whom it asks, is watched."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.running_service import Running, running, settings_in, working

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
WAIT_MILLISECONDS = 120_000  # of a busy machine
expect.set_options(timeout=WAIT_MILLISECONDS)

PHONE = {"width": 390, "height": 844}
_CUT = """[...document.querySelectorAll('table.cards')].map((table) => {
  const ends = [table, ...table.querySelectorAll('*')].map((e) => e.getBoundingClientRect().right);
  return Math.max(...ends) - table.parentElement.getBoundingClientRect().right;
}).filter((pixels) => pixels > 1)"""
SCREENSHOTS = Path(__file__).parents[3] / "screenshots"
"""Every page that is checked for accessibility is kept here to be looked at; no part of git."""


@dataclass
class Watched:
    """A page, and what went wrong on it."""

    page: Page
    url: str
    expected: tuple[str, ...] = ()
    """Ends of the addresses whose refusal the page knows how to show."""
    beside: str = "\0"
    """Begin of the addresses of another host that the browser may open."""
    wrong: list[str] = field(default_factory=list)
    test: str = ""
    kept: int = 0

    def __post_init__(self) -> None:
        self.page.set_default_timeout(WAIT_MILLISECONDS)
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("request", lambda request: self._check(request.url))

    def go(self, path: str) -> None:
        self.page.goto(self.url + path)

    def assert_well(self) -> None:
        """No complaint of the browser, nothing asked elsewhere, nothing wider than the screen."""
        assert not self.wrong
        wide = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, f"{self.page.url} is {wide} pixels wider than the screen"
        cut = self.page.evaluate(_CUT) if self.page.viewport_size == PHONE else []
        assert not cut, f"tables of {self.page.url} are cut off by so many pixels: {cut}"

    def assert_accessible(self) -> None:
        """No finding of axe-core that it calls serious or critical. The page is kept as seen."""
        self._keep()
        found = Axe().run(self.page).response["violations"]
        serious = [
            f"{one['id']}: {node['html'][:200]}"
            for one in found
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]
        assert not serious, f"{self.page.url}: {serious}"

    def _keep(self) -> None:
        name = (
            re.sub(r"[a-z]+_[0-9a-z]{26}", "ID", urlsplit(self.page.url).path.strip("/")) or "home"
        )
        name = name.replace("/", "-")
        is_dark = self.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        size = self.page.viewport_size or {"width": 0}
        look = f"{'dark' if is_dark else 'light'}-{size['width']}"
        self.kept += 1
        path = SCREENSHOTS / f"{self.test}-{self.kept:02d}-{name}-{look}.png"
        self.page.screenshot(path=path, full_page=True)

    def _note(self, message: ConsoleMessage) -> None:
        place = message.location.get("url", "")
        if message.type in ("error", "warning") and not place.endswith(self.expected or "\0"):
            self.wrong.append(f"{message.type}: {message.text} ({place})")

    def _check(self, url: str) -> None:
        parts = urlsplit(url)
        is_elsewhere = parts.netloc != urlsplit(self.url).netloc and not url.startswith(self.beside)
        if parts.scheme not in ("blob", "data") and is_elsewhere:
            self.wrong.append(f"asked {url}")


@pytest.fixture(scope="module")  # while it lives, nothing else may run an event loop
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine (apt-get install chromium)")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service without keys, whose jobs are done as they come."""
    with (
        running(settings_in(tmp_path_factory.mktemp("site"), inline_workers=1)) as service,
        working(service),
    ):
        yield service


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Running]:
    """A service that has no key yet, and whose jobs wait."""
    with running(settings_in(tmp_path)) as service:
        yield service


@pytest.fixture
def watch(
    browser: Browser, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Watched]]:
    """Open a page before a service; at its end nothing may have gone wrong."""
    contexts = []
    opened = []

    def open_page(
        service: Running, expected: tuple[str, ...] = (), beside: str = "\0", **options: Any
    ) -> Watched:
        context = browser.new_context(accept_downloads=True, reduced_motion="reduce", **options)
        contexts.append(context)
        name = re.sub(r"\W+", "-", request.node.name.removeprefix("test_")).strip("-")
        opened.append(Watched(context.new_page(), service.url, expected, beside, test=name))
        return opened[-1]

    yield open_page
    for watched in opened:
        watched.assert_well()
    for context in contexts:
        context.close()
