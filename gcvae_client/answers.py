"""Converts tables from the service to data frames, bytes or files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import httpx

from gcvae_client.connection import whole_file
from gcvae_client.frames import Formats, Frame, read_frame, require_frames
from gcvae_client.service import FilePath

_TABLES = (".csv", ".parquet", ".json", ".jsonl")
Fill = Callable[[BinaryIO], None]
"""Function that writes the table to an empty file."""


@dataclass(frozen=True)
class WantedTable:
    """Form in which a call returns a table: a data frame, bytes, or a saved file.

    Attributes:
        format: Format to request from the service: csv, parquet, json or jsonl.
        to: Path to save the table at; None to return it.
        is_frame: Whether to return a data frame instead of bytes.
        like: Data frame whose library (pandas, polars, Arrow) is used for the result; None for
            pandas.
    """

    format: str
    to: FilePath | None
    is_frame: bool
    like: Frame | None

    def take(self, fill: Fill, formats: Formats, seed: str | int | None) -> Frame | bytes | Path:
        """Returns the table as a data frame, as bytes, or as the path of the saved file.

        Args:
            fill: Function that writes the table to an empty file.
            formats: Function that returns the date formats of the table by column.
            seed: Seed of the rows, which is stored in `attrs["seed"]` of a pandas frame; None if
                there is none.
        """
        if self.to is not None:
            with whole_file(self.to) as file:
                fill(file)
            return Path(self.to)
        with tempfile.TemporaryFile() as stored:
            fill(stored)
            stored.seek(0)
            return self._frame(stored, formats, seed) if self.is_frame else stored.read()

    def _frame(self, file: BinaryIO, formats: Formats, seed: str | int | None) -> Frame:
        return seeded(read_frame(file, self.format, self.like, formats), seed)


def seeded(frame: Frame, seed: str | int | None) -> Frame:
    """Stores the seed of the rows in `attrs["seed"]` of a pandas frame, and returns the frame."""
    if seed is not None and hasattr(frame, "attrs"):
        frame.attrs["seed"] = int(seed)
    return frame


def wanted_table(
    format: str | None, to: FilePath | None, like: Frame | None, of_frame: str
) -> WantedTable:
    """Returns the form in which a call returns its table: a file if `to` is given, bytes if only
    `format` is given, otherwise a data frame.

    Args:
        format: Format of the file or bytes; None for the format of the extension of `to`.
        to: Path to save the table at; None to save no file.
        like: Data frame whose library is used for the result; None for pandas.
        of_frame: Format to request from the service if the result is a frame.

    Raises:
        ValueError: `format` is not given, and the extension of `to` is not supported.
        MissingPackageError: The result is a pandas frame, and pandas is not installed.
    """
    if format is not None:
        return WantedTable(format, to, False, None)
    if to is not None:
        return WantedTable(format_by_ending(to, _TABLES), to, False, None)
    if like is None:
        require_frames()
    return WantedTable(of_frame, None, True, like)


def copy(response: httpx.Response, file: BinaryIO) -> None:
    """Writes the body of a response to a file, in chunks."""
    file.writelines(response.iter_bytes())


def format_by_ending(to: FilePath, endings: Sequence[str]) -> str:
    """Returns the format of a file: its extension without the dot, in lower case, such as `csv`.

    Args:
        endings: Supported extensions, with the dot.

    Raises:
        ValueError: The extension is not supported.
    """
    ending = Path(to).suffix.lower()
    if ending not in endings:
        known = ", ".join(endings)
        raise ValueError(f"{to}: the file's name must end in {known}, or `format` say what it is")
    return ending.removeprefix(".")
