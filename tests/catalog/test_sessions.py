"""Web sessions end, and their tokens are replaced, in either database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from catalog import Catalog
from catalog.errors import BadKeyError
from catalog.records import Person, Scope

ADA = Person("usr_1", "acme", "Ada", ["read"], "https://login.example.com/out")


def _change(catalog: Catalog, columns: str) -> None:
    with catalog.database.writing() as session:
        session.execute(text(f"UPDATE sessions SET {columns}"))


def test_a_session_belongs_to_the_person_or_key_that_opened_it(catalog: Catalog) -> None:
    key, _ = catalog.keys.create("acme", "k", [Scope.READ])
    of_person, _ = catalog.sessions.open(ADA, 60, 60)
    of_key, _ = catalog.sessions.open(key.id, 60, 60)
    assert catalog.sessions.find(of_person).caller == ADA
    assert catalog.sessions.find(of_key).caller == key
    catalog.keys.revoke(key.id)
    with pytest.raises(BadKeyError, match="revoked"):
        catalog.sessions.find(of_key)
    assert catalog.sessions.find(of_person).caller == ADA


@pytest.mark.parametrize("columns", ["expires_at = 1", "used_at = used_at - 61"])
def test_a_session_that_has_ended_is_deleted(catalog: Catalog, columns: str) -> None:
    tokens = [catalog.sessions.open(ADA, 60, 60)[0] for _ in range(2)]
    _change(catalog, columns)
    with pytest.raises(BadKeyError, match="this session has ended"):
        catalog.sessions.find(tokens[0])
    last, _ = catalog.sessions.open(ADA, 60, 60)
    with catalog.database.reading() as session:
        assert session.execute(text("SELECT count(*) FROM sessions")).scalar() == 1
    assert catalog.sessions.find(last).caller == ADA


def test_a_session_that_is_used_does_not_become_idle(catalog: Catalog) -> None:
    token, _ = catalog.sessions.open(ADA, 7200, 3600)
    for _ in range(2):
        _change(catalog, "used_at = used_at - 3500")
        assert catalog.sessions.find(token).caller == ADA


def test_one_of_many_renewals_at_once_replaces_the_token(catalog: Catalog) -> None:
    token, _ = catalog.sessions.open(ADA, 60, 60)
    assert catalog.sessions.renew(token) is None, "it is new"
    _change(catalog, "renewed_at = renewed_at - 901")
    assert catalog.sessions.find(token).is_due
    with ThreadPoolExecutor(8) as threads:
        made = [new for new in threads.map(catalog.sessions.renew, [token] * 16) if new]
    assert len(made) == 1
    for valid in (token, *made):
        assert not catalog.sessions.find(valid).is_due
    assert catalog.sessions.renew(token) is None, "only the last token can be replaced"
    _change(catalog, "renewed_at = renewed_at - 61")
    catalog.sessions.find(made[0])
    for _ in range(2):
        with pytest.raises(BadKeyError):
            catalog.sessions.find(token)
    with pytest.raises(BadKeyError):
        catalog.sessions.find(made[0])


def test_a_session_is_closed_by_either_of_its_tokens(catalog: Catalog) -> None:
    token, _ = catalog.sessions.open(ADA, 60, 60)
    _change(catalog, "renewed_at = renewed_at - 901")
    new = catalog.sessions.renew(token)
    assert new is not None
    catalog.sessions.close(token)
    catalog.sessions.close(token)
    with pytest.raises(BadKeyError):
        catalog.sessions.find(new)
