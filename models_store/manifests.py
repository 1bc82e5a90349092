"""Manifests: JSON lists of the objects (shards) in which a table is stored. Concatenated in order,
they are the table's file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Self

from models_store.errors import CorruptedError, MissingObjectError, ShardsLostError
from models_store.store import Published, Store

_FORMAT = "gcvae-parts"
_VERSION = 1


@dataclass(frozen=True)
class Manifest:
    """List of the objects (shards) in which a table is stored.

    Attributes:
        shards: Key, size and checksum of each shard, in order.
        size_bytes, sha256: Size and checksum of the concatenated shards.
    """

    shards: tuple[Published, ...]
    size_bytes: int
    sha256: str

    @classmethod
    def of_shards(cls, store: Store, shards: Sequence[Published]) -> Self:
        """Returns the manifest of published shards, after reading and checking all their bytes.

        Raises:
            ShardsLostError: Shards are missing or corrupted.
        """
        digest, size_bytes, lost = hashlib.sha256(), 0, []
        for number, shard in enumerate(shards):
            try:
                for chunk in store.stream(shard.key, shard.sha256):
                    digest.update(chunk)
                    size_bytes += len(chunk)
            except (MissingObjectError, CorruptedError):
                lost.append(number)
        if lost:
            raise ShardsLostError(lost)
        return cls(tuple(shards), size_bytes, digest.hexdigest())

    @classmethod
    def read(cls, store: Store, key: str, sha256: str) -> Self:
        """Reads the manifest stored under `key`, whose bytes must have the checksum `sha256`.

        Raises:
            MissingObjectError, CorruptedError: Nothing is stored under the key, or other bytes are.
        """
        document = json.loads(store.read(key, sha256))
        shards = tuple(Published(**shard) for shard in document["parts"])
        return cls(shards, document["size_bytes"], document["sha256"])

    def to_bytes(self) -> bytes:
        """Returns the manifest as JSON in UTF-8, which `read` can restore."""
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "parts": [asdict(shard) for shard in self.shards],
            "size_bytes": self.size_bytes,
            "sha256": self.sha256,
        }
        return json.dumps(document, indent=1).encode()

    def stream(self, store: Store) -> Iterator[bytes]:
        """Returns an iterator over the bytes of all shards, and checks each shard's checksum.

        Raises:
            MissingObjectError, CorruptedError, UnavailableError: A shard is missing or damaged, or
                the store does not respond. If the first shard cannot be opened, the call raises the
                error. The iteration raises all others, CorruptedError after the shard's last chunk.
        """
        first, *rest = self.shards
        begun = store.stream(first.key, first.sha256)
        later = (chunk for shard in rest for chunk in store.stream(shard.key, shard.sha256))
        return chain(begun, later)

    def stream_range(self, store: Store, start: int, end: int) -> Iterator[bytes]:
        """Yields the concatenated shards' bytes `start` to `end - 1` without checking checksums.

        Raises:
            MissingObjectError, UnavailableError: A shard is missing, or the store does not respond.
        """
        first = 0
        for shard in self.shards:
            inside = max(start - first, 0), min(end - first, shard.size_bytes)
            if inside[0] < inside[1]:
                yield from store.stream_range(shard.key, *inside)
            first += shard.size_bytes
