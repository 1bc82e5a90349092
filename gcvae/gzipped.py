"""What a gzip file holds, read no further than it must be."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from gcvae.errors import TableError

PIECE_BYTES = 1 << 20


def unzipped(file: BinaryIO) -> Iterator[bytes]:
    """The content of a gzip file, a piece at a time, so that its reader can stop at a limit.

    No text has NUL bytes: the first piece with one is the last, for its reader to refuse.

    Raises:
        TableError: The file is truncated or damaged.
    """
    try:
        with gzip.open(file) as plain:
            while piece := plain.read(PIECE_BYTES):
                yield piece
                if b"\0" in piece:
                    return
    except EOFError:
        raise TableError("the gzip file ends early: it is truncated; send the whole file") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TableError(f"the gzip file is damaged: {error}") from None
