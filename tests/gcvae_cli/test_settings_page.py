"""The page of settings: `docs/settings.md` is what the command prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcvae_cli.__main__ import main

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_page_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings"]) == 0
    assert capsys.readouterr().out == PAGE.read_text(), "run: gcvae settings -o docs/settings.md"
