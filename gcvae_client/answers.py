"""Tables that are asked for: as a frame, as bytes, or as a file."""

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
"""Writes a table into an empty file."""


@dataclass(frozen=True)
class WantedTable:
    """In what form a table is asked for.

    Attributes:
        format: What the service is asked for.
        to: The file.
        is_frame: It becomes a frame, of the kind of `like` where that is given.
    """

    format: str
    to: Place | None
    is_frame: bool
    like: Frame | None

    def take(self, fill: Fill, formats: Formats, seed: str | int | None) -> Frame | bytes | Path:
        """The table in this form. A frame is read from a temporary file: no table is there twice.

        Args:
            formats: asks for the formats of the table's dates, by column.
            seed: that of its rows; a frame of pandas keeps it.
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
    """The form of a table: named, or by the file's ending; else a frame.

    Raises:
        ValueError: The ending stands for no form.
    """
    if format is not None:
        return WantedTable(format, to, False, None)
    if to is not None:
        return WantedTable(format_by_ending(to, _TABLES), to, False, None)
    if like is None:
        require_frames()
    return WantedTable(of_frame, None, True, like)


def copy(response: httpx.Response, file: BinaryIO) -> None:
    """Writes an answer into a file as it comes."""
    file.writelines(response.iter_bytes())


def format_by_ending(to: Place, endings: Sequence[str]) -> str:
    """The format that a file's name stands for. Raises: ValueError, for none of these."""
    ending = Path(to).suffix.lower()
    if ending not in endings:
        known = ", ".join(endings)
        raise ValueError(f"{to}: the file's name must end in {known}, or `format` say what it is")
    return ending.removeprefix(".")
