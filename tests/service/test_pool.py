"""Laws of the pool and of what is kept: bounded, and each thing done once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.errors import PoolFullError
from service.pool import WorkPool
from service.recent import Recent


@pytest.fixture
def pool() -> Iterator[WorkPool]:
    """One thread, and room for one more to wait."""
    pool = WorkPool("tests", 1, 1, "inline_waiting")
    yield pool
    pool.close()


def test_a_full_pool_refuses_and_names_its_setting(pool: WorkPool) -> None:
    go_on = threading.Event()

    async def fill() -> None:
        running = [asyncio.create_task(pool.run(go_on.wait)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(PoolFullError, match="GCVAE_INLINE_WAITING"):
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


def test_a_stream_holds_one_place_until_its_end(pool: WorkPool) -> None:
    async def stream() -> None:
        first = await pool.open(iter([b"a", b"b"]), limit_seconds=10)
        second = await pool.open(iter([b"c"]), limit_seconds=10)
        with pytest.raises(PoolFullError):
            await pool.open(iter([b"d"]), limit_seconds=10)
        assert [block async for block in first] == [b"a", b"b"]
        assert [block async for block in second] == [b"c"]
        third = await pool.open(iter([b"d"]), limit_seconds=10)
        assert [block async for block in third] == [b"d"]

    asyncio.run(stream())


def test_the_first_block_fails_before_anything_is_sent(pool: WorkPool) -> None:
    def blocks() -> Iterator[bytes]:
        raise ValueError("no block")
        yield b""

    async def stream() -> None:
        for _ in range(3):
            with pytest.raises(ValueError, match="no block"):
                await pool.open(blocks(), limit_seconds=10)

    asyncio.run(stream())


def test_a_reader_who_sleeps_loses_its_place(pool: WorkPool) -> None:
    async def sleep() -> None:
        slow = [await pool.open(iter([b"a", b"b"]), limit_seconds=0.01) for _ in range(2)]
        await asyncio.sleep(0.05)
        assert await pool.run(lambda: "room") == "room"
        with pytest.raises(TimeoutError):
            assert [block async for block in slow[0]]

    asyncio.run(sleep())


def test_what_many_ask_for_at_once_is_made_once() -> None:
    recent: Recent[str, int] = Recent(2)
    made: list[int] = []
    together = threading.Barrier(8)

    def ask(_: int) -> int:
        together.wait(5)
        return recent.get("key", lambda: made.append(1) or len(made))

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ask, range(8))) == [1] * 8


def test_the_least_recently_used_is_forgotten_first() -> None:
    recent: Recent[str, str] = Recent(2)
    for key in ("a", "b", "a", "c"):
        recent.get(key, lambda: "first")
    assert [recent.get(key, lambda: "second") for key in ("a", "c", "b")] == [
        "first", "first", "second",
    ]  # fmt: skip


def test_a_failure_is_not_kept() -> None:
    recent: Recent[str, int] = Recent(2)
    with pytest.raises(ZeroDivisionError):
        recent.get("key", lambda: 1 // 0)
    assert recent.get("key", lambda: 7) == 7
