"""The documentation as a site: built without a warning, shown by the service, asking nobody."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import gcvae
import gcvae_client
from service.site import pages
from tests.long.browser.conftest import PHONE, Watched
from tests.running_service import Running, assert_problem, running, settings_in

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does; a warning fails it."""
    place = tmp_path_factory.mktemp("guide")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir"]
    done = subprocess.run(
        [*command, place],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return place


@pytest.fixture(scope="module")
def shown(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that has the site."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "GUIDE", built)
        with running(settings_in(tmp_path_factory.mktemp("service"))) as service:
            yield service


def test_the_site_asks_no_outside_host(built: Path) -> None:
    pages = [*built.rglob("*.html")]
    assert len(pages) > 30
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loads = re.findall(
            r"<(?:script|img|iframe|link)\b[^>]*(?:src|href)=\"(https?:[^\"]*)", text
        )
        assert not loads, page.name


def test_every_page_begins_with_what_its_reader_can_do_after_it(built: Path) -> None:
    own = {"index", "404", "changelog", "security", "contributing"}
    for page in built.glob("*.html"):
        if page.stem not in own:
            article = page.read_text(encoding="utf-8").partition("<article")[2]
            assert re.search(r"</h1>\s*<p>After this page you", article), page.name


def test_every_page_is_listed_for_language_models(built: Path) -> None:
    listed = re.findall(r"(?m)^- \[[^]]+\]\((\S+\.html)\): \S", (built / "llms.txt").read_text())
    assert set(listed) == {f"{page.stem}.html" for page in (ROOT / "docs").glob("*.md")}
    assert all((built / page).is_file() for page in listed)


def test_every_public_name_is_in_the_reference(built: Path) -> None:
    for page, module in (("library", gcvae), ("client", gcvae_client)):
        text = (built / f"reference-{page}.html").read_text(encoding="utf-8")
        named = set(re.findall(r"id=\"[\w.]+\.(\w+)\"", text))
        assert set(module.__all__) <= named


@pytest.mark.parametrize(
    ("page", "options"),
    [
        ("", {}),
        ("tutorial.html", {"viewport": PHONE}),
        ("tables.html", {"color_scheme": "dark"}),
        ("reference-library.html", {"viewport": PHONE, "color_scheme": "dark"}),
        ("reference-rest.html", {}),
        ("notebook-library.html", {}),
        ("notebook-service.html", {"viewport": PHONE, "color_scheme": "dark"}),
    ],
)
def test_the_service_shows_it_without_a_complaint_of_the_browser(
    watch: Callable[..., Watched], shown: Running, page: str, options: dict[str, Any]
) -> None:
    visitor = watch(shown, **options)
    visitor.go(f"/guide/{page}")
    expect(visitor.page.locator("article h1")).to_be_visible()
    visitor.assert_accessible()


def test_its_search_finds(watch: Callable[..., Watched], shown: Running) -> None:
    visitor = watch(shown)
    visitor.go("/guide/")
    visitor.page.keyboard.press("/")
    visitor.page.keyboard.type("rare_level_rows")
    expect(visitor.page.locator(".md-search-result__item").first).to_be_visible()


def test_a_service_without_it_says_how_it_is_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, watch: Callable[..., Watched]
) -> None:
    """To programs, and on a page to people."""
    monkeypatch.setattr(pages, "GUIDE", tmp_path / "none")
    with running(settings_in(tmp_path)) as service:
        problem = assert_problem(service.http.get("/guide/"), 404, "not-found")
        visitor = watch(service, expected=("/guide/",))
        visitor.go("/guide/")
        expect(visitor.page.get_by_text("The guide has not been built")).to_be_visible()
    assert "make docs" in problem["detail"]
