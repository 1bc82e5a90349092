"""What worker processes tell each other."""

from __future__ import annotations

import json
import os

import pytest
from pydantic import ValidationError

from catalog import Cancelled, Failed, Outcome, Produced, Trained
from worker.settings import JobSettings, read_settings
from worker.work.messages import MessageReader, MessageWriter

_URLS = {
    "GCVAE_DATABASE_URL": "sqlite:////srv/catalog.db",
    "GCVAE_BROKER_URL": "filesystem:///srv/queue",
    "GCVAE_STORE_URL": "file:///srv/store",
}


def _sent(*messages: object) -> MessageReader:
    reading, writing = os.pipe()
    writer = MessageWriter(writing)
    for message in messages:
        if isinstance(message, dict):
            writer.progress(message)
        else:
            writer.outcome(message)  # type: ignore[arg-type]
    writer._file.close()
    reader = MessageReader(reading)
    while not reader.at_end:
        reader.read()
    os.close(reading)
    return reader


@pytest.mark.parametrize(
    "outcome",
    [
        Trained("key", "0" * 64, 5, {"columns": [1]}, {"history": [0.5]}),
        Produced("key", "0" * 64, 5, "text/csv", 3, {"seed": 1}),
        Failed("input", "no rows", ({"line": 3},)),
        Cancelled(),
    ],
)
def test_an_outcome_arrives_as_it_was_told(outcome: Outcome) -> None:
    reader = _sent({"fraction": 0.5}, outcome)
    assert reader.outcome == outcome
    assert reader.has_last_word


def test_of_many_reports_of_progress_the_newest_is_taken_once() -> None:
    reader = _sent({"fraction": 0.1}, {"fraction": 0.2})
    assert reader.take_progress() == {"fraction": 0.2}
    assert reader.take_progress() is None
    assert not reader.has_last_word


def test_numbers_that_json_does_not_have_become_null() -> None:
    reader = _sent({"bound_train": float("nan"), "all": [float("-inf"), 1.0]})
    assert reader.take_progress() == {"bound_train": None, "all": [None, 1.0]}


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


def test_progress_is_one_line_of_json() -> None:
    reading, writing = os.pipe()
    writer = MessageWriter(writing)
    writer.progress({"phase": "two\nlines"})
    assert json.loads(os.read(reading, 1000)) == {"progress": {"phase": "two\nlines"}}
    writer._file.close()
    os.close(reading)
