"""The outbox of webhooks: a due delivery is taken once, in order, and again if it failed."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from catalog import Catalog
from catalog.database.tables import DeliveryRow
from catalog.errors import NotFoundError
from catalog.records import Delivery, EventType
from catalog.webhooks.outbox import MOST_ATTEMPTS, Outbox


def _take(catalog: Catalog, at_once: int = 4, **open_attempts: int) -> list[Delivery]:
    return [taken.delivery for taken in catalog.outbox.take(60.0, at_once, open_attempts)]


def _expire(catalog: Catalog) -> None:
    """Let every attempt and every pause be over."""
    with catalog.database.writing() as session:
        waiting = update(DeliveryRow).where(DeliveryRow.next_attempt_at.is_not(None))
        session.execute(waiting.values(next_attempt_at=datetime(2020, 1, 1, tzinfo=UTC)))


def _webhook(catalog: Catalog, workspace: str = "ours") -> str:
    webhook, secret = catalog.workspace(workspace).webhooks.create(
        "https://x.org/", list(EventType)
    )
    assert len(secret) == 50
    return webhook.id


def test_events_about_one_subject_are_taken_one_after_the_other(catalog: Catalog) -> None:
    webhooks, webhook = catalog.workspace("ours").webhooks, _webhook(catalog)
    first, second = webhooks.ping(webhook), webhooks.ping(webhook)
    [taken] = _take(catalog)
    assert (taken.id, taken.attempts) == (first.id, 1)
    assert _take(catalog) == [], "the first attempt is under way"
    _expire(catalog)
    [again] = _take(catalog)
    assert (again.id, again.attempts) == (first.id, 2)
    catalog.outbox.delivered(first.id, 200)
    assert [found.id for found in _take(catalog)] == [second.id]


def test_a_failure_is_repeated_after_a_pause_and_given_up_in_the_end(catalog: Catalog) -> None:
    webhooks, webhook = catalog.workspace("ours").webhooks, _webhook(catalog)
    later = webhooks.ping(webhook)
    for attempt in range(1, MOST_ATTEMPTS + 1):
        [taken] = _take(catalog)
        assert taken.attempts == attempt
        catalog.outbox.failed(taken.id, attempt - 1, 500, "of an earlier attempt")
        catalog.outbox.failed(taken.id, attempt, 500, "refused")
        [entry] = webhooks.deliveries(webhook, limit=9, cursor=None).items
        assert (entry.status_code, entry.error) == (500, "refused")
        assert (entry.next_attempt_at is None) == (attempt == MOST_ATTEMPTS)
        assert _take(catalog) == []
        _expire(catalog)
    assert later.id == entry.id
    following = webhooks.ping(webhook)
    assert [found.id for found in _take(catalog)] == [following.id], "nothing waits for it"


def test_a_webhook_has_so_many_open_attempts_at_most(catalog: Catalog) -> None:
    webhook, other = _webhook(catalog), _webhook(catalog, "theirs")
    with catalog.database.writing() as session:
        from catalog.webhooks.events import announce

        for n in range(10):
            announce(session, "ours", EventType.JOB_ENDED, f"job_{n}", {})
        announce(session, "theirs", EventType.JOB_ENDED, "job_x", {})
    taken = _take(catalog, 4, **{webhook: 1})
    assert sorted(found.webhook_id for found in taken) == sorted([webhook] * 3 + [other])


def test_several_processes_never_take_the_same_delivery(catalog: Catalog) -> None:
    _webhook(catalog)
    with catalog.database.writing() as session:
        from catalog.webhooks.events import announce

        for n in range(60):
            announce(session, "ours", EventType.JOB_ENDED, f"job_{n}", {})
    found: list[str] = []

    def work() -> None:
        outbox = Outbox(catalog.database)
        while taken := outbox.take(60.0, 3, {}):
            found.extend(one.delivery.id for one in taken)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found.extend(delivery.id for delivery in _take(catalog, 100))
    assert len(found) == len(set(found)) == 60


def test_another_workspace_has_no_such_webhook(catalog: Catalog) -> None:
    webhook, theirs = _webhook(catalog), catalog.workspace("theirs").webhooks
    for refused in (theirs.get, theirs.delete, theirs.ping):
        with pytest.raises(NotFoundError):
            refused(webhook)
    with pytest.raises(NotFoundError):
        theirs.deliveries(webhook, limit=1, cursor=None)
    assert theirs.list(limit=9, cursor=None).items == []
