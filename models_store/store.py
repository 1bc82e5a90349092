"""Object store: bytes under keys, published completely or not at all, and checked when they are
read.

Keys begin with `datasets/<id>/`, `models/<id>/`, `results/<id>/` or `jobs/<id>/`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore, ObjectStore

from models_store.errors import (
    CorruptedError,
    ExistsError,
    MissingObjectError,
    UnavailableError,
)

_PART_BYTES = 8 * 1024 * 1024
_READ_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Published:
    """Key, size and SHA-256 checksum of bytes that were stored."""

    key: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class StoredObject:
    """Key, size and time of the last change of an object in the store, as listed."""

    key: str
    size_bytes: int
    modified_at: datetime


class Store:
    """Stores bytes under keys, in a local folder or in S3.

    `publish` is atomic: a reader sees all the bytes or none, and if two callers publish different
    bytes under one key, one of them fails. `delete` of a prefix is not atomic.

    All methods raise `UnavailableError` if the store does not respond, is full or rejects the
    request. Methods that read raise `MissingObjectError`, before the first chunk, if nothing is
    stored under the key, and `CorruptedError`, after the last chunk, if the checksum differs.

    Args:
        objects: The object store, as an object of the package obstore.
        folder: Path of the store if it is a local folder; None for S3.
    """

    def __init__(self, objects: ObjectStore, folder: Path | None = None) -> None:
        self._objects = objects
        self._folder = folder

    def publish(self, key: str, data: bytes | Path | Iterable[bytes]) -> Published:
        """Stores `data` under a key that is not in use; memory holds only a part of the data.

        Publishing the same bytes under the same key again is allowed, so that a request whose
        response was lost can be repeated.

        Args:
            data: The bytes, the path of a file that contains them, or an iterable of chunks.

        Raises:
            ExistsError: Other bytes are stored under the key; they are not changed.
        """
        counted = _Counted(_chunks_of(data))
        parts = _regroup(counted)
        first = next(parts, b"")
        try:
            with _translated(key):
                if len(first) < _PART_BYTES:
                    obstore.put(self._objects, key, first, mode="create", use_multipart=False)
                else:
                    self._publish_in_parts(key, chain([first], parts))
        except ExistsError:
            if not self._holds(key, counted):
                raise
        if self._folder is not None:
            with _translated(key):
                _sync_file(self._folder / key)
        return Published(key, counted.size_bytes, counted.sha256)

    def read(self, key: str, sha256: str) -> bytes:
        """Returns the bytes stored under `key`, after comparing their checksum with `sha256`."""
        return b"".join(self.stream(key, sha256))

    def stream(self, key: str, sha256: str) -> Iterator[bytes]:
        """Returns an iterator over the bytes stored under `key`, in chunks.

        Their checksum is compared with `sha256` after the last chunk; callers that have already
        passed on chunks must treat the exception as a failed transfer.
        """
        with _translated(key):
            answer = obstore.get(self._objects, key)
        return self._checked(key, sha256, answer)

    def stream_range(
        self, key: str, start: int, end: int, sha256: str | None = None
    ) -> Iterator[bytes]:
        """Returns an iterator over the bytes `start` to `end - 1` stored under `key`.

        Args:
            sha256: Checksum of these bytes, compared after the last chunk; None for no check.
        """
        with _translated(key):
            answer = obstore.get(self._objects, key, options={"range": (start, end)})
        return self._chunks(key, answer) if sha256 is None else self._checked(key, sha256, answer)

    def fetch(self, key: str, sha256: str, destination: Path) -> None:
        """Copies the bytes stored under `key` into the file `destination`."""
        with destination.open("wb") as file:
            file.writelines(self.stream(key, sha256))

    def exists(self, key: str) -> bool:
        """Returns whether something is stored under `key`."""
        try:
            with _translated(key):
                obstore.head(self._objects, key)
        except MissingObjectError:
            return False
        return True

    def list(self, prefix: str = "") -> Iterator[StoredObject]:
        """Yields an entry for each object whose key begins with the folder `prefix` (with or
        without a final slash); an empty prefix lists all.
        """
        with _translated(prefix):
            for page in obstore.list(self._objects, prefix or None):
                for entry in page:
                    yield StoredObject(entry["path"], entry["size"], entry["last_modified"])

    def delete(self, prefix: str) -> None:
        """Deletes everything whose key begins with `prefix` if it ends in `/`, otherwise only the
        object with this key. Deleting twice is allowed.
        """
        if not prefix.endswith("/"):
            self._delete_keys([prefix])
            return
        self._delete_keys([entry.key for entry in self.list(prefix)])
        if self._folder is not None:
            # Listings omit unfinished files of killed processes.
            with _translated(prefix), suppress(FileNotFoundError):
                shutil.rmtree(self._folder / prefix)

    def ping(self) -> None:
        """Checks that the object store responds.

        Raises:
            UnavailableError: The store does not respond.
        """
        self.exists("ping")

    def _holds(self, key: str, counted: _Counted) -> bool:
        with _translated(key):
            if obstore.head(self._objects, key)["size"] != counted.size_bytes:
                return False
        try:
            for _ in self.stream(key, counted.sha256):
                pass
        except CorruptedError:
            return False
        return True

    def _publish_in_parts(self, key: str, parts: Iterable[bytes]) -> None:
        # In S3, a multipart upload overwrites an existing object. The upload therefore has a
        # temporary key, and is then copied to `key` unless that exists. The temporary object of a
        # killed process is deleted with the prefix of `key`.
        temporary = f"{key}.part-{uuid.uuid4().hex}"
        with obstore.open_writer(self._objects, temporary, buffer_size=_PART_BYTES) as writer:
            for part in parts:
                writer.write(part)
        try:
            obstore.rename(self._objects, temporary, key, overwrite=False)
        except AlreadyExistsError:
            obstore.delete(self._objects, temporary)
            raise

    def _checked(self, key: str, sha256: str, answer: obstore.GetResult) -> Iterator[bytes]:
        digest = hashlib.sha256()
        for chunk in self._chunks(key, answer):
            digest.update(chunk)
            yield chunk
        if digest.hexdigest() != sha256:
            raise CorruptedError(key, sha256, digest.hexdigest())

    def _chunks(self, key: str, answer: obstore.GetResult) -> Iterator[bytes]:
        with _translated(key):
            for chunk in answer.stream(min_chunk_size=_READ_BYTES):
                yield bytes(chunk)

    def _delete_keys(self, keys: Iterable[str]) -> None:
        for key in keys:
            try:
                with _translated(key):
                    obstore.delete(self._objects, key)
            except MissingObjectError:
                continue


class _Counted:
    """Iterates over chunks of bytes and computes their total size and checksum."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._digest = hashlib.sha256()
        self.size_bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._digest.update(chunk)
            self.size_bytes += len(chunk)
            yield chunk

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


def _chunks_of(data: bytes | Path | Iterable[bytes]) -> Iterator[bytes]:
    if isinstance(data, Path):
        with data.open("rb") as file:
            while chunk := file.read(_PART_BYTES):
                yield chunk
    elif isinstance(data, bytes):
        yield data
    else:
        yield from data


def _regroup(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Joins small chunks: yields chunks of at least `_PART_BYTES`, except for the last."""
    part = bytearray()
    for chunk in chunks:
        part += chunk
        if len(part) >= _PART_BYTES:
            yield bytes(part)
            part = bytearray()
    if part:
        yield bytes(part)


def _sync_file(path: Path) -> None:
    """Syncs a new file and its directory entry to the disk, so that database records never refer to
    a file that a power failure removes."""
    for target in (path, path.parent):
        descriptor = os.open(target, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _translated(key: str) -> Iterator[None]:
    try:
        yield
    except AlreadyExistsError as error:
        raise ExistsError(key) from error
    except FileNotFoundError as error:
        raise MissingObjectError(key) from error
    except (BaseError, OSError) as error:
        first_line = str(error).split("\n", 1)[0]
        raise UnavailableError(f"the store cannot do this for {key!r}: {first_line}") from error


def folder_store(folder: Path) -> Store:
    """Opens the object store in a local folder, which is created if necessary."""
    objects = LocalStore(os.fspath(folder), mkdir=True, automatic_cleanup=True)
    return Store(objects, folder)
