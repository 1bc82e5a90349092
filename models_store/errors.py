"""The errors of the object store."""

from __future__ import annotations

from collections.abc import Sequence


class StoreError(Exception):
    """Base class of the errors of the object store."""


class StoreUrlError(StoreError):
    """The URL of the store is neither `file:///FOLDER` nor `s3://BUCKET/PREFIX`, or only one of the
    two credentials is given."""


class MissingObjectError(StoreError):
    """The object store contains nothing under a key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"nothing is stored under {key!r}")
        self.key = key


class ExistsError(StoreError):
    """The object store already contains other bytes under the key; they were not changed."""

    def __init__(self, key: str) -> None:
        super().__init__(f"something is stored under {key!r} already")
        self.key = key


class CorruptedError(StoreError):
    """The bytes stored under a key do not have their recorded checksum."""

    def __init__(self, key: str, expected_sha256: str, found_sha256: str) -> None:
        super().__init__(
            f"the bytes under {key!r} have sha256 {found_sha256}, published was {expected_sha256}"
        )
        self.key = key
        self.found_sha256 = found_sha256


class ShardsLostError(StoreError):
    """Some of the objects (shards) in which a table is stored are missing or corrupted.

    Attributes:
        numbers: Indices of the lost shards.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__(f"shards {', '.join(map(str, numbers))} are lost")
        self.numbers = tuple(numbers)


class UnavailableError(StoreError):
    """The object store does not respond, or rejects the request."""
