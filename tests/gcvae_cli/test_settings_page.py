"""The page of settings: `docs/settings.md` is what the command prints."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from gcvae.training.settings import TrainingConfig, usual_settings
from gcvae_cli.__main__ import main

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_page_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings"]) == 0
    assert capsys.readouterr().out == PAGE.read_text(), "run: gcvae settings -o docs/settings.md"


def test_sixteen_settings_are_marked_as_those_that_people_set() -> None:
    usual, expert = (
        re.findall(r"(?m)^\*\*`(\w+)`\*\*", part)
        for part in PAGE.read_text().split("## Common settings")[1].split("## Settings for experts")
    )
    assert usual == usual_settings()
    assert len(usual) == 16
    assert sorted(usual + expert) == sorted(field.name for field in fields(TrainingConfig))
