"""Writes output files atomically, and determines their format by their extension."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

from gcvae_cli.errors import OutputError, WrongUsageError

STANDARD_OUTPUT = "-"
_GIBIBYTE = 1 << 30


@contextmanager
def opened_output(destination: str) -> Iterator[BinaryIO]:
    """Context manager that yields a stream, which replaces the file if the block succeeds.

    Data is written to a temporary file in the same folder, which is renamed at the end; if the
    block raises, an existing file stays unchanged. Devices and pipes are written directly.

    Args:
        destination: Path of the file; `-` is standard output.

    Raises:
        OutputError: The folder does not exist or is not writable, or the disk is full.
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
    path = path.resolve()  # replaces the target of a link instead of the link
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
    """Checks that the disk of an output file has enough free space.

    Args:
        destination: Path of the file; standard output, devices and pipes are not checked.
        n_bytes: Number of bytes that are still to be written.

    Raises:
        OutputError: There is less free space.
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
    """Writes a string to a file or, for `-`, to standard output, ending with one line break."""
    with opened_output(destination) as stream:
        stream.write(f"{text.rstrip()}\n".encode())


def format_of(destination: str, formats: dict[str, str], *, standard_output: str) -> str:
    """Returns the format that belongs to the extension of an output file.

    Args:
        destination: Path of the file; `-` is standard output.
        formats: Format by extension; the longest matching extension counts.
        standard_output: Format for standard output and devices.

    >>> format_of("rows.csv.gz", {".csv": "csv", ".csv.gz": "csv.gz"}, standard_output="csv")
    'csv.gz'

    Raises:
        WrongUsageError: The extension is not supported.
    """
    if destination == STANDARD_OUTPUT or destination.startswith("/dev/"):
        return standard_output
    endings = [ending for ending in formats if destination.lower().endswith(ending)]
    if not endings:
        known = ", ".join(formats)
        raise WrongUsageError(f"{destination}: the output's name must end in {known}")
    return formats[max(endings, key=len)]


def _is_written_directly(path: Path) -> bool:
    """True for devices and pipes, and also for folders."""
    return path.exists() and not path.is_file()


@contextmanager
def _write_errors(destination: str, written: Path) -> Iterator[None]:
    """Context manager that converts system errors into an OutputError that names the destination.

    Only errors about the path `written` are converted: the file to which the bytes go, which may be
    a temporary one. Errors without a path are converted too.
    """
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


_SHOWN: ContextVar[dict[str, str] | None] = ContextVar("shown outputs", default=None)


@contextmanager
def shown_as(output: str, name: str) -> Iterator[None]:
    """Context manager in which the function `answer` prints `name` instead of the path `output`.

    It is used if a command writes to a temporary file that is then copied to a database or bucket.
    Users then see the name of the destination.
    """
    token = _SHOWN.set({output: name})
    try:
        yield
    finally:
        _SHOWN.reset(token)


def answer(document: dict[str, Any]) -> None:
    """Prints a JSON object on one line of standard output, for scripts."""
    if "output" in document:
        shown = (_SHOWN.get() or {}).get(document["output"], document["output"])
        document = document | {"output": shown}
    print(json.dumps(document, ensure_ascii=False))


def refuse_two_answers(output: str, as_json: bool) -> None:
    """Raises a WrongUsageError if `output` is standard output (`-`), to which `--json` also
    writes."""
    if as_json and output == STANDARD_OUTPUT:
        raise WrongUsageError("--json and -o - both write to standard output; give -o a file")


def warn(warnings: tuple[str, ...]) -> None:
    """Prints warnings to standard error, one on each line."""
    for warning in warnings:
        print(f"gcvae: warning: {warning}", file=sys.stderr)
