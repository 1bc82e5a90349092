"""The audit log grows, and shows what was done to it."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import text

from catalog import Catalog
from catalog.records import AuditedAction


def _audited_action(i: int, workspace: str = "acme") -> AuditedAction:
    return AuditedAction(workspace, "key_1", "POST /v1/models", f"/v1/models/{i}", status=202)


def test_entries_are_numbered_in_one_chain_and_listed_by_workspace(catalog: Catalog) -> None:
    written = [catalog.audit.append(_audited_action(i, "ab"[i % 2])) for i in range(5)]
    assert [entry.number for entry in written] == [1, 2, 3, 4, 5]
    assert len({entry.digest for entry in written}) == 5
    assert list(catalog.audit.entries()) == written
    assert catalog.audit.last() == written[-1]
    ours = catalog.workspace("a").audit
    page = ours.list(limit=2)
    assert page.items == [written[4], written[2]]
    rest = ours.list(limit=2, cursor=page.next_cursor)
    assert (rest.items, rest.next_cursor) == ([written[0]], None)
    assert catalog.audit.first_break() is None


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("UPDATE audit SET status = 204 WHERE number = 3", 3),
        ("UPDATE audit SET actor = 'key_2' WHERE number = 1", 1),
        ("DELETE FROM audit WHERE number = 2", 3),
        ("UPDATE audit SET number = 9 WHERE number = 5", 9),
    ],
)
def test_a_changed_a_missing_and_a_moved_entry_break_the_chain(
    catalog: Catalog, statement: str, number: int
) -> None:
    for i in range(5):
        catalog.audit.append(_audited_action(i))
    with catalog.database.engine.begin() as connection:
        connection.execute(text(statement))
    broken = catalog.audit.first_break()
    assert broken is not None
    assert broken.number == number


def test_those_who_write_at_once_make_one_chain(catalog: Catalog) -> None:
    threads = [
        threading.Thread(
            target=lambda: [catalog.audit.append(_audited_action(i)) for i in range(5)]
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [entry.number for entry in catalog.audit.entries()] == list(range(1, 21))
    assert catalog.audit.first_break() is None
