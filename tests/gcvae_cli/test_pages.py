"""`gcvae open` shows the pages of a service that runs, and says what to do where none does."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest

from gcvae_cli.__main__ import main
from gcvae_cli.ports import free_port
from tests.running_service import running, settings_in


def test_open_shows_the_pages_of_a_running_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(webbrowser, "open", shown.append)
    with running(settings_in(tmp_path)) as service:
        assert main(["open", "--server", service.url]) == 0
    assert shown == [f"{service.url}/"]
    assert capsys.readouterr().out == f"{service.url}/\n"


def test_open_says_how_to_start_a_service_where_none_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: pytest.fail(f"{url} was shown"))
    address = f"http://127.0.0.1:{free_port('127.0.0.1', 0)}"
    assert main(["open", "--server", address]) == 1
    assert "start one with `gcvae serve`" in capsys.readouterr().err
    assert main(["open", "--server", "127.0.0.1:8000"]) == 2
    assert "http://" in capsys.readouterr().err
