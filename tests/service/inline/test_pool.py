"""Laws of inline work in processes: bounded, streamed, told of every error, and never lost."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from catalog import Catalog
from gcvae.errors import ConditionError
from models_store.errors import CorruptedError
from runtime.processes import ForkServer
from service.errors import PoolFullError, ProcessDiedError, SlowReaderError
from service.inline.pool import InlinePool
from service.inline.process import OtherProcessError
from service.metrics import Metrics
from tests.running_service import inline_pids, settings_in
from tests.service import works
from tests.wordings import refuses

Test = Callable[[InlinePool], Awaitable[None]]


def metrics_in(folder: Path) -> Metrics:
    """Metrics whose records are never asked."""
    return Metrics(Catalog(f"sqlite:///{folder}/catalog.sqlite").statistics)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., None]:
    """Run a test with a pool of its own: one process, room for one more to wait."""

    def run(test: Test, **given: object) -> None:
        sizes = {"inline_workers": 1, "inline_waiting": 1} | given
        pool = InlinePool(settings_in(tmp_path, **sizes), metrics_in(tmp_path))

        async def ask() -> None:
            await test(pool)

        try:
            asyncio.run(ask())
        finally:
            pool.close()

    return run


def is_alive(pid: int) -> bool:
    """Whether there is such a process, a zombie aside."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def until(is_so: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < ends_at
        await asyncio.sleep(0.01)


def test_a_full_pool_refuses_and_names_its_setting(
    run: Callable[..., None], tmp_path: Path
) -> None:
    go_on = tmp_path / "go-on"

    async def fill(pool: InlinePool) -> None:
        waiting = partial(works.wait_for, path=go_on)
        running = [asyncio.create_task(pool.run(waiting)) for _ in range(2)]
        await asyncio.sleep(0)
        with refuses(PoolFullError):
            await pool.run(works.own_pid)
        go_on.touch()
        assert await asyncio.gather(*running) == [go_on, go_on]
        assert await pool.run(works.own_pid) != os.getpid()

    run(fill)


def test_nothing_is_started_before_it_is_needed(run: Callable[..., None], tmp_path: Path) -> None:
    before = inline_pids()

    async def look(pool: InlinePool) -> None:
        assert inline_pids() <= before
        pids = {await pool.run(works.own_pid) for _ in range(3)}
        assert inline_pids() - before == pids
        waiting = asyncio.create_task(pool.run(partial(works.wait_for, path=tmp_path / "go")))
        await asyncio.sleep(0)
        pids.add(await pool.run(works.own_pid))
        assert len(pids) == 2
        assert inline_pids() - before == pids
        (tmp_path / "go").touch()
        await waiting

    run(look, inline_workers=3)


def test_errors_are_what_they_were_in_the_other_process(run: Callable[..., None]) -> None:
    async def fail(pool: InlinePool) -> None:
        with refuses(ConditionError, "/given/fuel") as refused:
            await pool.run(works.refuse)
        cause = refused.value.__cause__
        assert isinstance(cause, OtherProcessError)
        assert "in refuse" in str(cause)
        with refuses(CorruptedError) as damaged:
            await pool.run(works.damage)
        assert damaged.value.found_sha256 == "bb"
        with pytest.raises(RuntimeError, match="HeldError: held"):
            await pool.run(works.hold)
        assert await pool.run(works.n_streams) == 0

    run(fail)


def test_a_stream_holds_one_place_until_its_end(run: Callable[..., None]) -> None:
    async def stream(pool: InlinePool) -> None:
        first = await pool.open(partial(works.stream, chunks=(b"a", b"b")))
        second = await pool.open(partial(works.stream, chunks=(b"c",)))
        assert first.summary == {"n_chunks": 2}
        with pytest.raises(PoolFullError):
            await pool.open(partial(works.stream, chunks=(b"d",)))
        assert [chunk async for chunk in first.chunks] == [b"a", b"b"]
        assert [chunk async for chunk in second.chunks] == [b"c"]
        third = await pool.open(partial(works.stream, chunks=(b"d",)))
        assert [chunk async for chunk in third.chunks] == [b"d"]
        assert await pool.run(works.n_streams) == 0

    run(stream)


def test_a_stream_stays_in_the_process_that_began_it(run: Callable[..., None]) -> None:
    async def stream(pool: InlinePool) -> None:
        async def read() -> set[bytes]:
            opened = await pool.open(partial(works.stream_pids, n=5))
            return {chunk async for chunk in opened.chunks}

        found = await asyncio.gather(*(read() for _ in range(4)))
        assert all(len(pids) == 1 for pids in found)
        assert len(set.union(*found)) == 2

    run(stream, inline_workers=2, inline_waiting=2)


def test_the_first_block_fails_before_anything_is_sent(run: Callable[..., None]) -> None:
    async def stream(pool: InlinePool) -> None:
        for _ in range(3):
            with pytest.raises(ConditionError):
                await pool.open(works.refuse)  # type: ignore[arg-type]

    run(stream)


def test_a_reader_who_sleeps_loses_its_place(run: Callable[..., None]) -> None:
    async def sleep(pool: InlinePool) -> None:
        await pool.run(works.own_pid)
        work = partial(works.stream, chunks=(b"a", b"b"))
        slow = [await pool.open(work) for _ in range(2)]
        await until(lambda: pool.n_free == 2)
        assert await pool.run(works.n_streams) == 0
        with refuses(SlowReaderError):
            assert [chunk async for chunk in slow[0].chunks]

    run(sleep, inline_seconds=0.2)


def test_a_reader_who_leaves_leaves_nothing(run: Callable[..., None], tmp_path: Path) -> None:
    async def leave(pool: InlinePool) -> None:
        opened = await pool.open(partial(works.stream, chunks=(b"a", b"b")))
        chunks = opened.chunks
        assert await anext(chunks) == b"a"
        await chunks.aclose()  # type: ignore[attr-defined]
        assert pool.n_free == 2
        assert await pool.run(works.n_streams) == 0

        at_work = asyncio.create_task(pool.run(partial(works.wait_for, path=tmp_path / "go")))
        in_line = asyncio.create_task(pool.run(works.own_pid))
        await asyncio.sleep(0.05)
        for task in (in_line, at_work):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert pool.n_free == 1, "the process is still at work"
        (tmp_path / "go").touch()
        await until(lambda: pool.n_free == 2)
        assert await pool.run(works.own_pid) in inline_pids()

    run(leave)


def test_a_killed_process_is_told_and_replaced(run: Callable[..., None]) -> None:
    async def kill(pool: InlinePool) -> None:
        before = await pool.run(works.own_pid)
        with refuses(ProcessDiedError):
            await pool.run(works.be_killed)
        assert not is_alive(before)
        assert await pool.run(works.own_pid) not in (before, os.getpid())
        opened = await pool.open(works.stream_and_die)
        bystander = await pool.open(partial(works.stream, chunks=(b"a", b"b")))
        with pytest.raises(ProcessDiedError):
            assert [chunk async for chunk in opened.chunks]
        with pytest.raises(ProcessDiedError):
            assert [chunk async for chunk in bystander.chunks]
        assert await pool.run(works.n_streams) == 0
        assert pool.n_free == 2

    run(kill)


def test_a_process_that_can_not_start_is_told_and_tried_again(
    run: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = inline_pids()

    async def start(pool: InlinePool) -> None:
        with monkeypatch.context() as without_folder, closing(ForkServer("math")) as server:
            without_folder.setenv("TMPDIR", str(tmp_path / "none"))
            without_folder.setattr("service.inline.pool.FORK_SERVER", server)
            with pytest.raises(ProcessDiedError):
                await pool.warm()
            with pytest.raises(ProcessDiedError):
                await pool.run(works.own_pid)
        assert pool.n_free == 2
        assert inline_pids() <= before
        pid = await pool.run(works.own_pid)
        assert inline_pids() - before == {pid}

    run(start)


def test_a_process_killed_while_it_is_idle_costs_nobody_anything(
    run: Callable[..., None],
) -> None:
    async def kill(pool: InlinePool) -> None:
        pid = await pool.run(works.own_pid)
        os.kill(pid, 9)
        await until(lambda: not is_alive(pid))
        await asyncio.sleep(0.1)
        assert await pool.run(works.own_pid) != pid

    run(kill)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are spawned there")
def test_a_process_has_torch_from_the_beginning(run: Callable[..., None]) -> None:
    async def look(pool: InlinePool) -> None:
        assert await pool.run(works.has_torch)

    run(look)


def test_the_event_loop_goes_first(run: Callable[..., None]) -> None:
    async def look(pool: InlinePool) -> None:
        own = os.getpriority(os.PRIO_PROCESS, 0)
        assert await pool.run(works.niceness) == min(19, own + 5)

    run(look)


def test_closing_ends_a_process_at_work(run: Callable[..., None], tmp_path: Path) -> None:
    pids: list[int] = []

    async def leave(pool: InlinePool) -> None:
        pids.append(await pool.run(works.own_pid))
        work = partial(works.wait_for, path=tmp_path / "never")
        asked = asyncio.create_task(pool.run(work))
        await asyncio.sleep(0.05)
        pool.close()
        assert not is_alive(pids[0])
        with pytest.raises(ProcessDiedError):
            await asked

    began = time.monotonic()
    run(leave)
    assert time.monotonic() - began < 15, "it did not wait for the work"
    assert not list(tmp_path.glob("gcvae-process-*"))
