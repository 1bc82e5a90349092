"""Results on files: whole or not at all, in the format that the name's ending says."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from gcvae_cli.errors import OutputError, WrongUsageError

STANDARD_OUTPUT = "-"
_GIBIBYTE = 1 << 30


@contextmanager
def opened_output(destination: str) -> Iterator[BinaryIO]:
    """A stream that becomes `destination` when the block ends well, and vanishes otherwise.

    The bytes go to a temporary name beside it, which is renamed at the end: no reader ever sees
    half a file, and a file that was there stays whole. `-` is the standard output; a device or a
    pipe is written directly.

    Raises:
        OutputError: the folder is missing or not writable, or the disk is full.
    """
    if destination == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(destination)
    if _is_written_directly(path):
        with _write_errors(destination, path), path.open("wb") as stream:
            yield stream
        return
    path = path.resolve()  # the file behind a link is replaced, not the link
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with _write_errors(destination, temporary):
            with temporary.open("xb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def require_space(destination: str, n_bytes: float) -> None:
    """Let outputs pass that the disk has room for; `n_bytes` are still to be written.

    Raises:
        OutputError: it has not.
    """
    path = Path(destination)
    if destination == STANDARD_OUTPUT or _is_written_directly(path):
        return
    free = shutil.disk_usage(path.resolve().parent).free
    if n_bytes > free:
        raise OutputError(
            f"cannot write {destination}: about {n_bytes / _GIBIBYTE:,.1f} GiB are still to be "
            f"written, but the disk has {free / _GIBIBYTE:,.1f} GiB left; request fewer rows"
        )


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


def _is_written_directly(path: Path) -> bool:
    """True for a device or a pipe, which no file may replace; and for a folder, which says so."""
    return path.exists() and not path.is_file()


@contextmanager
def _write_errors(destination: str, written: Path) -> Iterator[None]:
    """Names what the user named, where the system names what is written, or nothing at all."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename not in (None, str(written)):
            raise
        if isinstance(error, FileNotFoundError):
            folder = written.parent
            message = f"cannot write {destination}: there is no folder {folder}; create it first"
            raise OutputError(message) from error
        raise OutputError(f"cannot write {destination}: {error.strerror or error}") from error


def answer(document: dict[str, Any]) -> None:
    """Prints what a script reads: one JSON object on a line."""
    print(json.dumps(document, ensure_ascii=False))


def refuse_two_answers(output: str, as_json: bool) -> None:
    if as_json and output == STANDARD_OUTPUT:
        raise WrongUsageError("--json and -o - both write to standard output; give -o a file")


def warn(warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        print(f"gcvae: warning: {warning}", file=sys.stderr)
