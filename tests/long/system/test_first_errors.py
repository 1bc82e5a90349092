"""The errors that new users make first, at every door: the message names the place and says what
to do.

The errors stand in `first_errors.py`, the tables that make them in `first_tables.py`.
"""

from __future__ import annotations

import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from catalog.records import Scope
from gcvae.artifact.file import pack_tensors, unpack_tensors
from gcvae.artifact.versions import VERSION
from gcvae.errors import GcvaeError
from gcvae_cli.__main__ import main
from gcvae_client import Client, ClientError
from tests.long.browser.conftest import CHROMIUM, WAIT_MILLISECONDS
from tests.long.system.first_errors import SLIPS, WRONG_KEY, Slip
from tests.long.system.first_tables import Place, write_first_tables
from tests.running_service import running, settings_in, working

MOST_BYTES = 200_000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("first")
    write_first_tables(folder)
    plain = settings_in(
        folder / "open", inline_workers=1, max_upload_bytes=MOST_BYTES, max_sample_rows=1000
    )
    with (
        running(plain) as service,
        working(service),
        running(settings_in(folder / "keys")) as guarded,
        socket.socket() as silent,
    ):
        silent.bind(("127.0.0.1", 0))  # and nobody listens
        model = train_one(Client(service.url), folder)
        for name, scopes in (("full.key", [Scope.READ, Scope.WRITE]), ("read.key", [Scope.READ])):
            _, key = guarded.catalog.keys.create("default", name, scopes)
            (folder / name).write_text(f"{key}\n")
        (folder / "wrong.key").write_text(WRONG_KEY)
        waiting = Client(guarded.url, api_key=(folder / "full.key").read_text())
        names = {
            "U": service.url,
            "H": service.url.replace("http:", "https:"),
            "M": model,
            "K": guarded.url,
            "T": waiting.train(waiting.upload(folder / "cars.csv"))["id"],
            "S": f"http://127.0.0.1:{silent.getsockname()[1]}",
        }
        with Client(service.url, retries=0) as client, waiting:
            yield Place(folder, names, client, waiting)


def train_one(client: Client, folder: Path) -> str:
    """The id of a model of `cars.csv`; its file, and what is wrong with others, lie beside it."""
    quick = {"preset": "paper-vae", "device": "cpu", "max_steps": 20, "evaluate_every_steps": 10}
    with client:
        model = client.train(client.upload(folder / "cars.csv"), report_share=0, **quick)
        client.wait(model)
        client.download_model(model, folder / "cars.gcvae")
    tensors, manifest = unpack_tensors((folder / "cars.gcvae").read_bytes())
    newer = pack_tensors(tensors, manifest | {"version": VERSION + 1})
    (folder / "newer.gcvae").write_bytes(newer)
    data = bytearray((folder / "cars.gcvae").read_bytes())
    (folder / "cut.gcvae").write_bytes(data[:5000])
    data[-1] ^= 1
    (folder / "bent.gcvae").write_bytes(data)
    return str(model["id"])


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine (apt-get install chromium)")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture(scope="module")
def page(browser: Browser) -> Page:
    opened = browser.new_page()
    opened.set_default_timeout(WAIT_MILLISECONDS)
    return opened


BY_SHELL = [(slip, line) for slip in SLIPS for line in slip.shell]
BY_PYTHON = [slip for slip in SLIPS if slip.python is not None]
BY_BROWSER = [slip for slip in SLIPS if slip.browser is not None]


def named(value: object) -> str:
    return value.name if isinstance(value, Slip) else str(value)


def assert_helps(message: str, slip: Slip, door: str, place: Place) -> None:
    """The message has all that it is to say, and nothing of our insides."""
    for words in (*slip.says, *slip.more.get(door, ())):
        assert place.filled(words).lower() in message.lower(), message
    assert "Traceback" not in message
    assert "Authorization" not in message, "a header is no advice at this door"
    assert str(place.folder / "open") not in message
    assert (place.folder / "read.key").read_text().strip() not in message


@pytest.mark.parametrize(("slip", "line"), BY_SHELL, ids=named)
def test_a_command_says_in_one_line_what_to_do(
    place: Place,
    slip: Slip,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(place.folder)
    assert main(shlex.split(place.filled(line))) in (1, 2)
    *before, message = capsys.readouterr().err.splitlines()
    assert message.startswith("gcvae: ")
    assert all(said.startswith("gcvae: uploaded ") for said in before), before
    assert_helps(message, slip, "shell", place)


@pytest.mark.parametrize("slip", BY_PYTHON, ids=named)
def test_an_exception_of_the_client_says_what_to_do(place: Place, slip: Slip) -> None:
    assert slip.python is not None
    with pytest.raises((ClientError, GcvaeError, OSError, ValueError)) as raised:
        slip.python(place)
    assert "\n" not in str(raised.value)
    assert_helps(str(raised.value), slip, "python", place)


@pytest.mark.parametrize("slip", BY_BROWSER, ids=named)
def test_a_page_says_what_to_do(place: Place, slip: Slip, page: Page) -> None:
    assert slip.browser is not None
    page.context.clear_cookies()
    slip.browser(page, place)
    shown = page.locator("[role=alert], .empty")
    expect(shown).to_be_visible()
    assert_helps(shown.inner_text(), slip, "browser", place)
