"""Passwords of connections are readable with their key, at their place, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.connections.safe import Safe
from service.errors import RequestError
from service.settings import ServiceSettings


def _safe(**settings: object) -> Safe:
    return Safe(ServiceSettings(**settings))  # type: ignore[arg-type]


def test_a_password_is_read_with_the_same_key_at_the_same_place_only() -> None:
    safe, other = _safe(secrets_key="k" * 32), _safe(secrets_key="l" * 32)
    sealed = safe.seal("pässword", "con_1", "https://example.com")
    assert "pässword" not in sealed
    assert sealed != safe.seal("pässword", "con_1", "https://example.com")
    assert safe.open(sealed, "con_1", "https://example.com") == "pässword"
    for reader, place in (
        (safe, ("con_2", "https://example.com")),
        (safe, ("con_1", "https://example.org")),
        (other, ("con_1", "https://example.com")),
    ):
        with pytest.raises(RequestError, match="GCVAE_SECRETS_KEY"):
            reader.open(sealed, *place)


def test_a_key_beside_an_sqlite_database_is_made_once_for_its_owner(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalog.sqlite"
    sealed = _safe(home_dir=tmp_path).seal("pw", "con_1")
    assert _safe(database_url=url, home_dir="elsewhere").open(sealed, "con_1") == "pw"
    assert (tmp_path / "secrets.key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secrets.key"]


def test_other_databases_need_a_key_in_the_settings(tmp_path: Path) -> None:
    settings = {"database_url": "postgresql://me@127.0.0.1/x", "home_dir": tmp_path}
    with pytest.raises(RequestError, match="GCVAE_SECRETS_KEY"):
        _safe(**settings).seal("pw", "con_1")
    assert list(tmp_path.iterdir()) == []
