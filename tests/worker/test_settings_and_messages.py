"""What worker processes tell each other."""

from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from catalog import Cancelled, Failed, Produced, Trained
from worker.settings import JobSettings, read_settings
from worker.work.messages import Message, TryAgain, finite

_URLS = {
    "GCVAE_DATABASE_URL": "sqlite:////srv/catalog.db",
    "GCVAE_BROKER_URL": "filesystem:///srv/queue",
    "GCVAE_STORE_URL": "file:///srv/store",
}


@pytest.mark.parametrize(
    "message",
    [
        {"bound_train": float("nan"), "all": [float("-inf"), 1.0]},
        Trained("key", "0" * 64, 5, {"columns": [1]}, {"history": [0.5, float("nan")]}),
        Produced("key", "0" * 64, 5, "text/csv", 3, {"seed": 1, "width": float("inf")}),
        TryAgain(Failed("input", "no rows", ({"line": float("nan")},)), smaller_batch=True),
        Cancelled(),
    ],
)
def test_numbers_that_json_does_not_have_become_null_and_all_else_stays(message: Message) -> None:
    sent = finite(message)
    assert type(sent) is type(message)
    assert str(sent) == re.sub(r"-?\b(nan|inf)\b", "None", str(message))


def test_a_child_is_told_the_settings_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (_URLS | {"GCVAE_LEASE_SECONDS": "30"}).items():
        monkeypatch.setenv(name, value)
    settings = read_settings()
    assert settings.jobs.lease_seconds == 30
    for name, value in settings.child_environment().items():
        monkeypatch.setenv(name, value)
    assert read_settings() == settings


def test_a_missing_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _URLS:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValidationError, match="database_url"):
        read_settings()


def test_a_lease_is_prolonged_at_least_thrice() -> None:
    with pytest.raises(ValidationError, match="a third of lease_seconds"):
        JobSettings(lease_seconds=2.0, heartbeat_seconds=1.0)
