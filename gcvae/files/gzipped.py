"""What a gzip file holds, read no further than it must be."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from gcvae.errors import TableError

CHUNK_BYTES = 1 << 20


class UnzippedFile:
    """The content of a gzip file, to be read on and on."""

    def __init__(self, file: BinaryIO) -> None:
        """Begins where the file stands."""
        self._plain = gzip.GzipFile(fileobj=file, mode="rb")  # whatever the file was opened for

    def read(self, n_bytes: int) -> bytes:
        """At most n_bytes more; none at the end.

        Raises:
            TableError: The file is truncated or damaged.
        """
        try:
            return self._plain.read(n_bytes)
        except EOFError:
            message = "the gzip file ends early: it is truncated; send the whole file"
            raise TableError(message) from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise TableError(f"the gzip file is damaged: {error}") from None


def unzipped(file: BinaryIO) -> Iterator[bytes]:
    """The content of a gzip file, a chunk at a time, so that its reader can stop at a limit.

    No text has NUL bytes: the first chunk with one is the last, for its reader to refuse.

    Raises:
        TableError: The file is truncated or damaged.
    """
    plain = UnzippedFile(file)
    while chunk := plain.read(CHUNK_BYTES):
        yield chunk
        if b"\0" in chunk:
            return
