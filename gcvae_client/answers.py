"""Tables in responses: as a frame, as bytes, or as a file."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import httpx

from gcvae_client.connection import whole_file
from gcvae_client.frames import Formats, Frame, read_frame, require_frames
from gcvae_client.service import Place

_TABLES = (".csv", ".parquet", ".json", ".jsonl")
Fill = Callable[[BinaryIO], None]
"""Function that writes a table to an empty file."""


@dataclass(frozen=True)
class WantedTable:
    """Requested form of a table.

    Attributes:
        format: Format requested from the service.
        to: File to save the table in.
        is_frame: Whether to return a frame, of the kind of `like` if it is given.
    """

    format: str
    to: Place | None
    is_frame: bool
    like: Frame | None

    def take(self, fill: Fill, formats: Formats, seed: str | int | None) -> Frame | bytes | Path:
        """Returns the table in the requested form. Frames are read from a temporary file, to save
        memory.

        Args:
            fill: Writes the table to a file.
            formats: Returns the date formats of the table by column.
            seed: Seed of its rows, which a pandas frame stores in `attrs`.
        """
        if self.to is not None:
            with whole_file(self.to) as file:
                fill(file)
            return Path(self.to)
        if not self.is_frame:
            content = io.BytesIO()
            fill(content)
            return content.getvalue()
        with tempfile.TemporaryFile() as stored:
            fill(stored)
            stored.seek(0)
            found = read_frame(stored, self.format, self.like, formats)
        if seed is not None and hasattr(found, "attrs"):
            found.attrs["seed"] = int(seed)
        return found


def wanted_table(
    format: str | None, to: Place | None, like: Frame | None, of_frame: str
) -> WantedTable:
    """Returns the requested form: as named, or by the file's extension, else a frame.

    Raises:
        ValueError: The extension is not that of a supported format.
    """
    if format is not None:
        return WantedTable(format, to, False, None)
    if to is not None:
        return WantedTable(format_by_ending(to, _TABLES), to, False, None)
    if like is None:
        require_frames()
    return WantedTable(of_frame, None, True, like)


def copy(response: httpx.Response, file: BinaryIO) -> None:
    """Streams the body of a response to a file."""
    file.writelines(response.iter_bytes())


def format_by_ending(to: Place, endings: Sequence[str]) -> str:
    """Returns the format of a file's extension.

    Raises:
        ValueError: The extension is not supported.
    """
    ending = Path(to).suffix.lower()
    if ending not in endings:
        known = ", ".join(endings)
        raise ValueError(f"{to}: the file's name must end in {known}, or `format` say what it is")
    return ending.removeprefix(".")
