"""Results on files: whole or not at all, in the format that the name's ending says."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from gcvae_cli.errors import OutputError, WrongUsageError

STANDARD_OUTPUT = "-"


@contextmanager
def opened_output(destination: str) -> Iterator[BinaryIO]:
    """A stream that becomes `destination` when the block ends well, and vanishes otherwise.

    The bytes go to a temporary name beside it, which is renamed at the end: no reader ever sees
    half a file, and a file that was there stays whole. `-` is the standard output; a device or a
    pipe is written directly.

    Raises:
        OutputError: the folder is missing or not writable.
    """
    if destination == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(destination)
    if path.exists() and not path.is_file():
        with _open(path, "wb") as stream:
            yield stream
        return
    path = path.resolve()  # the file behind a link is replaced, not the link
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with _open(temporary, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(destination: str, text: str) -> None:
    """Write a text, with a final line break."""
    with opened_output(destination) as stream:
        stream.write(f"{text.rstrip()}\n".encode())


def format_of(destination: str, formats: dict[str, str], *, standard_output: str) -> str:
    """The format that the destination's ending stands for.

    >>> format_of("rows.csv.gz", {".csv": "csv", ".csv.gz": "csv.gz"}, standard_output="csv")
    'csv.gz'

    Raises:
        WrongUsageError: it stands for none of them.
    """
    if destination == STANDARD_OUTPUT or destination.startswith("/dev/"):
        return standard_output
    endings = [ending for ending in formats if destination.lower().endswith(ending)]
    if not endings:
        known = ", ".join(formats)
        raise WrongUsageError(f"{destination}: the output's name must end in {known}")
    return formats[max(endings, key=len)]


def _open(path: Path, mode: str) -> BinaryIO:
    try:
        return path.open(mode)  # type: ignore[return-value]
    except OSError as error:
        raise OutputError(f"can not write {path}: {error.strerror}") from error


Writer = Callable[[BinaryIO], None]
