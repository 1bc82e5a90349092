"""What a gzip file holds, read no further than it must be."""

from __future__ import annotations

import gzip
import zlib
from typing import BinaryIO

from gcvae.errors import TableError

CHUNK_BYTES = 1 << 20


class UnzippedFile:
    """The content of a gzip file, to be read on and on."""

    def __init__(self, file: BinaryIO, most_bytes: int | None = None) -> None:
        """Begins where the file stands; more than `most_bytes` are refused."""
        self._plain = gzip.GzipFile(fileobj=file, mode="rb")  # whatever the file was opened for
        self._most_bytes = most_bytes

    def read(self, n_bytes: int) -> bytes:
        """At most n_bytes more; none at the end.

        Raises:
            TableError: The file is truncated or damaged, or holds too much.
        """
        try:
            data = self._plain.read(n_bytes)
        except EOFError:
            message = "the gzip file ends early: it is truncated; send the whole file"
            raise TableError(message) from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise TableError(f"the gzip file is damaged: {error}") from None
        if self._most_bytes is not None and self._plain.tell() > self._most_bytes:
            raise TableError(
                f"the gzip file holds more than {self._most_bytes / (1 << 30):g} GiB; if that is no"
                " mistake, unpack it and read the plain file"
            )
        return data
