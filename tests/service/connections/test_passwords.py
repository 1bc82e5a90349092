"""Passwords of connections are readable with their key, at their place, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.connections.passwords import PasswordEncryption
from service.errors import RequestError
from service.settings import ServiceSettings


def _encryption(**settings: object) -> PasswordEncryption:
    return PasswordEncryption(ServiceSettings(**settings))  # type: ignore[arg-type]


def test_a_password_is_read_with_the_same_key_at_the_same_place_only() -> None:
    encryption, other = _encryption(secrets_key="k" * 32), _encryption(secrets_key="l" * 32)
    sealed = encryption.encrypt("pässword", "con_1", "https://example.com")
    assert "pässword" not in sealed
    assert sealed != encryption.encrypt("pässword", "con_1", "https://example.com")
    assert encryption.decrypt(sealed, "con_1", "https://example.com") == "pässword"
    for reader, connection in (
        (encryption, ("con_2", "https://example.com")),
        (encryption, ("con_1", "https://example.org")),
        (other, ("con_1", "https://example.com")),
    ):
        with pytest.raises(RequestError, match="GCVAE_SECRETS_KEY"):
            reader.decrypt(sealed, *connection)


def test_a_key_beside_an_sqlite_database_is_made_once_for_its_owner(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalog.sqlite"
    sealed = _encryption(home_dir=tmp_path).encrypt("pw", "con_1")
    assert _encryption(database_url=url, home_dir="elsewhere").decrypt(sealed, "con_1") == "pw"
    assert (tmp_path / "secrets.key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secrets.key"]


def test_other_databases_need_a_key_in_the_settings(tmp_path: Path) -> None:
    settings = {"database_url": "postgresql://me@127.0.0.1/x", "home_dir": tmp_path}
    with pytest.raises(RequestError, match="GCVAE_SECRETS_KEY"):
        _encryption(**settings).encrypt("pw", "con_1")
    assert list(tmp_path.iterdir()) == []
