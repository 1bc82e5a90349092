"""Reads the content of a gzip file as a stream, with a limit on its size."""

from __future__ import annotations

import gzip
import zlib
from typing import BinaryIO

from gcvae.errors import TableError

CHUNK_BYTES = 1 << 20


class UnzippedFile:
    """Readable stream of the uncompressed content of a gzip file, with a limit on its size."""

    def __init__(self, file: BinaryIO, most_bytes: int | None = None) -> None:
        """Begins at the file's current position.

        Args:
            file: Compressed file.
            most_bytes: Maximum size of the uncompressed content; None for no limit.
        """
        self._plain = gzip.GzipFile(fileobj=file, mode="rb")  # the default is the file's mode
        self._most_bytes = most_bytes

    def read(self, n_bytes: int) -> bytes:
        """Returns at most `n_bytes` more bytes; b"" at the end.

        Raises:
            TableError: The file is truncated or damaged, or its content is too large.
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
