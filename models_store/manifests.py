"""Manifests: one table whose bytes lie in several parts. Joined in order they are the table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, Self

from models_store.errors import CorruptedError, MissingObjectError, PartsLostError
from models_store.store import Published, Store

_FORMAT = "gcvae-parts"
_VERSION = 1


@dataclass(frozen=True)
class Manifest:
    """The parts of a table, and what their bytes are together."""

    parts: tuple[Published, ...]
    size_bytes: int
    sha256: str

    @classmethod
    def of_parts(cls, store: Store, parts: Sequence[Published]) -> Self:
        """The manifest of parts that were published: their bytes are read, and so checked.

        Raises:
            PartsLostError: some are not there, or are not those that were published.
            UnavailableError: the store does not answer.
        """
        digest, size_bytes, lost = hashlib.sha256(), 0, []
        for number, part in enumerate(parts):
            try:
                for block in store.stream(part.key, part.sha256):
                    digest.update(block)
                    size_bytes += len(block)
            except (MissingObjectError, CorruptedError):
                lost.append(number)
        if lost:
            raise PartsLostError(lost)
        return cls(tuple(parts), size_bytes, digest.hexdigest())

    @classmethod
    def read(cls, store: Store, key: str, sha256: str) -> Self:
        """The manifest under a key.

        Raises:
            MissingObjectError, CorruptedError, UnavailableError: as `Store.read`.
        """
        document = json.loads(store.read(key, sha256))
        parts = tuple(Published(**part) for part in document["parts"])
        return cls(parts, document["size_bytes"], document["sha256"])

    def to_bytes(self) -> bytes:
        """What `read` reads."""
        document: dict[str, Any] = {"format": _FORMAT, "version": _VERSION, **asdict(self)}
        return json.dumps(document, indent=1).encode()

    def stream(self, store: Store) -> Iterator[bytes]:
        """The bytes of all parts, block by block; each part is checked as it ends.

        Raises:
            MissingObjectError, CorruptedError, UnavailableError: as `Store.stream`; what is amiss
                with the first part's place is raised by the call.
        """
        first, *rest = self.parts
        begun = store.stream(first.key, first.sha256)
        later = (block for part in rest for block in store.stream(part.key, part.sha256))
        return chain(begun, later)

    def stream_range(self, store: Store, start: int, end: int) -> Iterator[bytes]:
        """The bytes from `start` up to, but without, `end`. A piece of a part has no checksum.

        Raises:
            MissingObjectError, UnavailableError: as `Store.stream_range`.
        """
        first = 0
        for part in self.parts:
            inside = max(start - first, 0), min(end - first, part.size_bytes)
            if inside[0] < inside[1]:
                yield from store.stream_range(part.key, *inside)
            first += part.size_bytes
