"""Keys on both databases: shown once, kept as a hash, refused alike."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from catalog import Catalog
from catalog.access.keys import KEY_FORM
from catalog.errors import BadKeyError, ConflictError, NotFoundError
from catalog.records import Scope
from tests.wordings import refuses

READ = [Scope.READ]


def test_a_key_is_verified_and_its_secret_is_nowhere(catalog: Catalog) -> None:
    assert not catalog.keys.exist()
    key, written = catalog.keys.create("acme", "nightly", [Scope.WRITE, Scope.READ])
    assert catalog.keys.exist()
    assert KEY_FORM.fullmatch(written)
    assert catalog.keys.verify(written) == key
    assert (key.workspace, key.name, key.scopes) == ("acme", "nightly", ["read", "write"])
    with catalog.database.engine.connect() as connection:
        rows = connection.execute(text("SELECT * FROM keys")).all()
    assert written.split("_", 2)[2] not in str(rows)
    assert "$argon2id$" in str(rows)


def test_two_keys_of_one_secret_have_other_hashes(catalog: Catalog) -> None:
    secret = "s" * 43
    for letter in "ab":
        catalog.keys.create("acme", "", READ, text=f"gcv_{letter * 26}_{secret}")
    with catalog.database.engine.connect() as connection:
        hashes = connection.execute(text("SELECT secret_hash FROM keys")).scalars().all()
    assert len(set(hashes)) == 2


@pytest.mark.parametrize("wrong", ["", "gcv_x9", "bearer", "gcv_" + "0" * 26 + "_" + "x" * 43, "é"])
def test_what_is_no_key_is_refused(catalog: Catalog, wrong: str) -> None:
    catalog.keys.create("acme", "", READ)
    with pytest.raises(BadKeyError) as refusal:
        catalog.keys.verify(wrong)
    assert not wrong or wrong not in str(refusal.value)


def test_a_truncated_key_is_refused(catalog: Catalog) -> None:
    _, written = catalog.keys.create("acme", "", READ)
    for length in range(len(written)):
        with pytest.raises(BadKeyError):
            catalog.keys.verify(written[:length])


def test_revoked_and_expired_keys_are_refused_by_name(catalog: Catalog) -> None:
    past = datetime.now(UTC) - timedelta(seconds=60)
    _, expired = catalog.keys.create("acme", "", READ, expires_at=past)
    key, revoked = catalog.keys.create("acme", "", READ)
    first = catalog.keys.revoke(key.id)
    assert catalog.keys.revoke(key.id) == first, "revoking twice is no error and changes nothing"
    with refuses(BadKeyError):
        catalog.keys.verify(expired)
    with refuses(BadKeyError):
        catalog.keys.verify(revoked)
    with pytest.raises(NotFoundError):
        catalog.keys.revoke("key_none")


def test_a_rotated_key_opens_the_same_and_the_old_one_nothing(catalog: Catalog) -> None:
    old, before = catalog.keys.create("acme", "nightly", READ)
    new, after = catalog.keys.rotate(old.id)
    assert (new.workspace, new.name, new.scopes) == (old.workspace, old.name, old.scopes)
    assert catalog.keys.verify(after) == new
    with pytest.raises(BadKeyError):
        catalog.keys.verify(before)
    with refuses(ConflictError):
        catalog.keys.rotate(old.id)
    assert [key.id for key in catalog.keys.list()] == [old.id, new.id]


def test_a_key_from_a_file_is_made_once(catalog: Catalog) -> None:
    given = f"gcv_{'0' * 26}_{'s' * 43}"
    first, written = catalog.keys.create("acme", "", READ, text=given)
    assert written == given
    assert catalog.keys.create("acme", "", READ, text=given)[0] == first
    with pytest.raises(ConflictError):
        catalog.keys.create("acme", "", READ, text=f"gcv_{'0' * 26}_{'t' * 43}")


def test_a_use_is_written_now_and_then(catalog: Catalog) -> None:
    key, written = catalog.keys.create("acme", "", READ)
    assert key.last_used_at is None
    catalog.keys.note_use(key.id)
    first = catalog.keys.verify(written).last_used_at
    assert first is not None
    time.sleep(0.01)
    catalog.keys.note_use(key.id)
    assert catalog.keys.verify(written).last_used_at == first
