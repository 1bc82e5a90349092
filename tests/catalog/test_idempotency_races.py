"""Idempotency keys where many requests come at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from catalog import Catalog
from catalog.errors import IdempotencyBusyError


def test_of_many_that_begin_at_once_one_is_new_and_the_others_are_told_to_wait(
    catalog_url: str,
) -> None:
    catalog = Catalog(catalog_url)
    together = threading.Barrier(8)

    def begin(_: int) -> str:
        together.wait(60)
        try:
            return (
                "new"
                if catalog.workspace("default").idempotency.begin("key", "0" * 64) is None
                else "known"
            )
        except IdempotencyBusyError:
            return "busy"

    with ThreadPoolExecutor(8) as threads:
        answers = sorted(threads.map(begin, range(8)))
    catalog.close()
    assert answers == ["busy"] * 7 + ["new"]
