"""Settings come from the environment or from files, never both; secrets stay where they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError
from pydantic_settings import SettingsError

from catalog.settings import CatalogSettings
from models_store import open_store
from models_store.errors import StoreUrlError
from models_store.settings import StoreSettings
from runtime.settings import RuntimeSettings, environment_of, with_password
from service.settings import ServiceSettings
from tests.wordings import refuses


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    """A file that ends in a line break, as an editor leaves it."""
    file = tmp_path / "password"
    file.write_text("s3cret/&é\n", encoding="utf-8")
    return file


def test_a_value_is_what_its_file_holds(
    monkeypatch: pytest.MonkeyPatch, password_file: Path
) -> None:
    monkeypatch.setenv("GCVAE_DATABASE_URL", "postgresql://gcvae@db:5432/gcvae")
    monkeypatch.setenv("GCVAE_BROKER_URL", "redis://queue:6379/0")
    monkeypatch.setenv("GCVAE_DATABASE_PASSWORD_FILE", str(password_file))
    monkeypatch.setenv("GCVAE_BROKER_PASSWORD_FILE", str(password_file))
    for settings in (CatalogSettings(), ServiceSettings()):  # type: ignore[call-arg]
        assert settings.database_url == "postgresql://gcvae:s3cret%2F%26%C3%A9@db:5432/gcvae"
        assert settings.broker_url == "redis://:s3cret%2F%26%C3%A9@queue:6379/0"
        assert "s3cret" not in repr(settings)


def test_numbers_may_stand_in_files_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "port").write_text("8123\r\n")
    monkeypatch.setenv("GCVAE_PORT_FILE", str(tmp_path / "port"))
    assert ServiceSettings().port == 8123


def test_a_value_and_its_file_together_are_refused(
    monkeypatch: pytest.MonkeyPatch, password_file: Path
) -> None:
    monkeypatch.setenv("GCVAE_LOG_LEVEL", "info")
    monkeypatch.setenv("GCVAE_LOG_LEVEL_FILE", str(password_file))
    with refuses(SettingsError):
        RuntimeSettings()


def test_a_file_that_can_not_be_read_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GCVAE_DATABASE_PASSWORD_FILE", str(tmp_path / "none"))
    with refuses(SettingsError):
        ServiceSettings()
    done = subprocess.run(
        [sys.executable, "-m", "gcvae_cli", "api"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "GCVAE_DATABASE_PASSWORD_FILE" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_password_without_a_server_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCVAE_DATABASE_PASSWORD", "x")
    with pytest.raises(ValidationError, match="is not the URL of a server"):
        ServiceSettings()


def test_a_password_replaces_the_one_in_the_address() -> None:
    url = "postgresql://gcvae:old@[::1]:5432/gcvae?sslmode=require"
    assert with_password(url, "new") == url.replace("old", "new")
    assert with_password(url, None) == url


def test_no_secret_is_copied_into_the_environment_of_a_child(
    monkeypatch: pytest.MonkeyPatch, password_file: Path
) -> None:
    monkeypatch.setenv("GCVAE_DATABASE_URL", "postgresql://gcvae@db/gcvae")
    monkeypatch.setenv("GCVAE_BROKER_URL", "redis://queue/0")
    monkeypatch.setenv("GCVAE_DATABASE_PASSWORD_FILE", str(password_file))
    told = environment_of(dict(CatalogSettings()))  # type: ignore[call-arg]
    assert told["GCVAE_DATABASE_URL"] == "postgresql://gcvae@db/gcvae"
    assert not [value for value in told.values() if "s3cret" in value]
    assert told["GCVAE_RESEND_SECONDS"] == "2.0"


def test_what_the_environment_does_not_say_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GCVAE_STORE_URL", raising=False)
    monkeypatch.delenv("GCVAE_ALLOWED_HOSTS", raising=False)
    told = environment_of(
        {"store_url": "file:///srv", "allowed_hosts": ("a", "b"), "metrics_port": None}
    )
    assert told == os.environ | {"GCVAE_STORE_URL": "file:///srv", "GCVAE_ALLOWED_HOSTS": "a,b"}


def test_the_keys_of_s3_come_in_pairs(monkeypatch: pytest.MonkeyPatch, password_file: Path) -> None:
    monkeypatch.setenv("GCVAE_STORE_URL", "s3://bucket")
    monkeypatch.setenv("GCVAE_STORE_ACCESS_KEY_FILE", str(password_file))
    settings = StoreSettings()  # type: ignore[call-arg]
    assert settings.store_access_key == "s3cret/&é"
    with refuses(StoreUrlError):
        open_store(settings.store_url, settings.store_access_key, settings.store_secret_key)


def test_an_endpoint_of_traces_is_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCVAE_TRACES_ENDPOINT", "collector:4318")
    with pytest.raises(ValidationError, match="traces_endpoint"):
        RuntimeSettings()
