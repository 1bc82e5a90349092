"""Laws of the pool and of what is kept: bounded, and each thing done once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.errors import PoolFullError
from service.inline.single_flight_cache import SingleFlightCache
from service.pool import WorkPool
from tests.wordings import refuses


@pytest.fixture
def pool() -> Iterator[WorkPool]:
    """One thread, and room for one more to wait."""
    pool = WorkPool("tests", 1, 1, "table_waiting")
    yield pool
    pool.close()


def test_a_full_pool_refuses_and_names_its_setting(pool: WorkPool) -> None:
    go_on = threading.Event()

    async def fill() -> None:
        running = [asyncio.create_task(pool.run(go_on.wait)) for _ in range(2)]
        await asyncio.sleep(0)
        with refuses(PoolFullError):
            await pool.run(go_on.wait)
        go_on.set()
        assert await asyncio.gather(*running) == [True, True]
        assert await pool.run(lambda: "room again") == "room again"

    asyncio.run(fill())


def test_what_the_work_raises_is_raised_and_frees_its_place(pool: WorkPool) -> None:
    async def fail() -> None:
        for _ in range(5):
            with pytest.raises(ZeroDivisionError):
                await pool.run(lambda: 1 // 0)  # type: ignore[arg-type]

    asyncio.run(fail())


def test_what_many_ask_for_at_once_is_made_once() -> None:
    recent: SingleFlightCache[str, int] = SingleFlightCache(2)
    made: list[int] = []
    together = threading.Barrier(8)

    def ask(_: int) -> int:
        together.wait(5)
        return recent.get("key", lambda: made.append(1) or len(made))

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ask, range(8))) == [1] * 8


def test_the_least_recently_used_is_forgotten_first() -> None:
    recent: SingleFlightCache[str, str] = SingleFlightCache(2)
    for key in ("a", "b", "a", "c"):
        recent.get(key, lambda: "first")
    assert [recent.get(key, lambda: "second") for key in ("a", "c", "b")] == [
        "first", "first", "second",
    ]  # fmt: skip


def test_a_failure_is_not_kept() -> None:
    recent: SingleFlightCache[str, int] = SingleFlightCache(2)
    with pytest.raises(ZeroDivisionError):
        recent.get("key", lambda: 1 // 0)
    assert recent.get("key", lambda: 7) == 7
