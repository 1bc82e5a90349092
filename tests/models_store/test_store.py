"""One contract, run by every store: a folder, and S3."""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from models_store import Published, Store, open_store
from models_store.errors import (
    CorruptedError,
    ExistsError,
    MissingObjectError,
    StoreUrlError,
    UnavailableError,
)
from tests.servers.servers import S3Server, s3_environment
from tests.servers.store_proxy import StoreMode, StoreProxy
from tests.wordings import refuses

_LARGE = bytes(range(256)) * 4096 * 20  # 20 MiB: more than two parts


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _keys(store: Store, prefix: str = "") -> list[str]:
    return sorted(entry.key for entry in store.list(prefix))


class StoreContract:
    """What every store does; a subclass provides the fixture `store`."""

    def test_what_was_published_is_read_back(self, store: Store) -> None:
        published = store.publish("models/a/model", b"weights")
        assert published == Published("models/a/model", 7, _sha256(b"weights"))
        assert store.read("models/a/model", published.sha256) == b"weights"

    def test_nothing_at_all_can_be_published(self, store: Store) -> None:
        published = store.publish("empty", b"")
        assert published.size_bytes == 0
        assert store.read("empty", published.sha256) == b""

    def test_large_bytes_come_from_a_file_or_an_iterator_alike(
        self, store: Store, tmp_path: Path
    ) -> None:
        file = tmp_path / "large"
        file.write_bytes(_LARGE)
        from_file = store.publish("file", file)
        from_blocks = store.publish(
            "blocks", (_LARGE[i : i + 9999] for i in range(0, 20 << 20, 9999))
        )
        assert from_file.sha256 == from_blocks.sha256 == _sha256(_LARGE)
        assert from_file.size_bytes == from_blocks.size_bytes == len(_LARGE)
        assert b"".join(store.stream("blocks", from_blocks.sha256)) == _LARGE
        assert _keys(store) == ["blocks", "file"]

    @pytest.mark.parametrize("second", [b"second", _LARGE], ids=["small", "large"])
    def test_a_key_is_published_once(self, store: Store, second: bytes) -> None:
        first = store.publish("key", b"first")
        with refuses(ExistsError):
            store.publish("key", second)
        assert store.read("key", first.sha256) == b"first"
        assert _keys(store) == ["key"]

    @pytest.mark.parametrize("data", [b"small", _LARGE], ids=["small", "large"])
    def test_the_same_bytes_again_are_no_error(self, store: Store, data: bytes) -> None:
        assert store.publish("key", data) == store.publish("key", data)
        assert _keys(store) == ["key"]

    def test_of_many_publishers_of_one_key_one_wins(self, store: Store) -> None:
        won: list[Published] = []
        lost: list[ExistsError] = []

        def publish(number: int) -> None:
            try:
                won.append(store.publish("race", b"%d" % number))
            except ExistsError as error:
                lost.append(error)

        threads = [threading.Thread(target=publish, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert len(lost) == 7
        store.read("race", won[0].sha256)

    def test_a_source_that_breaks_off_leaves_nothing_under_the_key(self, store: Store) -> None:
        def breaking(size: int) -> Iterator[bytes]:
            yield _LARGE[:size]
            raise ConnectionResetError("the client left")

        for size in (10, 12 << 20):
            with pytest.raises((ConnectionResetError, UnavailableError)):
                store.publish("broken", breaking(size))
            assert not store.exists("broken")
        store.delete("broken")
        assert _keys(store) == []

    def test_altered_bytes_are_noticed(self, store: Store) -> None:
        store.publish("key", b"altered")
        with refuses(CorruptedError):
            store.read("key", _sha256(b"original"))

    def test_a_missing_key_is_named_before_the_first_block(self, store: Store) -> None:
        with refuses(MissingObjectError):
            store.stream("nowhere", _sha256(b""))
        assert not store.exists("nowhere")

    def test_a_copy_in_a_file_is_the_same(self, store: Store, tmp_path: Path) -> None:
        published = store.publish("key", _LARGE)
        store.fetch("key", published.sha256, tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes() == _LARGE

    def test_deleting_a_prefix_leaves_its_neighbours(self, store: Store) -> None:
        for key in ("jobs/1/a", "jobs/1/b/c", "jobs/10/a", "jobs/2"):
            store.publish(key, b"x")
        store.delete("jobs/1/")
        assert _keys(store) == ["jobs/10/a", "jobs/2"]
        store.delete("jobs/1/")
        store.delete("jobs/2")
        store.delete("jobs/2")
        assert _keys(store) == ["jobs/10/a"]

    def test_listings_say_keys_and_sizes(self, store: Store) -> None:
        store.publish("a/1", b"xyz")
        store.publish("b/1", b"")
        assert [(entry.key, entry.size_bytes) for entry in store.list("a")] == [("a/1", 3)]
        assert _keys(store) == ["a/1", "b/1"]

    def test_a_store_that_answers_answers_a_ping(self, store: Store) -> None:
        store.ping()


class TestFolderStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return open_store(f"file://{tmp_path}/a%20store")

    def test_deleting_a_prefix_takes_unfinished_files_and_empty_folders(
        self, store: Store, tmp_path: Path
    ) -> None:
        store.publish("jobs/1/a", b"x")
        (tmp_path / "a store" / "jobs" / "1" / "b#1").write_bytes(b"half")
        store.delete("jobs/1/")
        assert not (tmp_path / "a store" / "jobs" / "1").exists()


class TestS3Store(StoreContract):
    @pytest.fixture
    def store(self, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Store:
        for name, value in s3.environment().items():
            monkeypatch.setenv(name, value)
        return open_store(f"s3://bucket/{uuid.uuid4().hex}")


@pytest.mark.slow
class TestAStoreThatFails:
    """S3 behind a proxy that misbehaves, over real HTTP."""

    @pytest.fixture
    def proxy(self, s3: S3Server) -> Iterator[StoreProxy]:
        with StoreProxy(s3.port) as proxy:
            yield proxy

    @pytest.fixture
    def store(self, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch) -> Store:
        for name, value in s3_environment(proxy.url).items():
            monkeypatch.setenv(name, value)
        return open_store(f"s3://bucket/{uuid.uuid4().hex}")

    @pytest.mark.parametrize(
        "mode", [StoreMode.ERRORS, StoreMode.FULL, StoreMode.READ_ONLY, StoreMode.TRUNCATED]
    )
    def test_what_it_does_not_do_is_told_and_can_be_done_later(
        self, store: Store, proxy: StoreProxy, mode: StoreMode
    ) -> None:
        kept = store.publish("kept", _LARGE)
        proxy.mode = mode
        with pytest.raises(UnavailableError, match="new"):
            store.publish("new", b"new")
        with pytest.raises(UnavailableError, match="kept"):
            store.delete("kept")
        proxy.mode = StoreMode.WELL
        if mode is StoreMode.TRUNCATED:  # it was deleted, and only the answer was lost
            assert not store.exists("kept")
        else:
            assert store.read("kept", kept.sha256) == _LARGE
        store.publish("new", b"new")
        assert store.exists("new")

    def test_a_publication_whose_first_answer_was_lost_succeeds(
        self, store: Store, proxy: StoreProxy
    ) -> None:
        proxy.mode = StoreMode.TRUNCATED
        heal = threading.Timer(0.15, lambda: setattr(proxy, "mode", StoreMode.WELL))
        heal.start()
        published = store.publish("key", b"bytes")
        heal.join()
        assert store.read("key", published.sha256) == b"bytes"

    def test_a_reading_that_is_broken_off_is_never_taken_for_whole(
        self, store: Store, proxy: StoreProxy
    ) -> None:
        published = store.publish("key", _LARGE)
        proxy.mode = StoreMode.TRUNCATED
        with pytest.raises(UnavailableError):
            store.read("key", published.sha256)


def test_an_s3_that_is_not_there_is_said_to_be_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    store = open_store("s3://bucket")
    with pytest.raises(UnavailableError):
        store.ping()


@pytest.mark.parametrize("url", ["", "/srv/store", "ftp://host/x", "file://host/x", "s3://"])
def test_an_address_that_is_no_store_is_refused(url: str) -> None:
    with refuses(StoreUrlError):
        open_store(url)
