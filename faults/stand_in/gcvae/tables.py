"""Tables as lines of text."""

from __future__ import annotations

from pathlib import Path

from gcvae.errors import TableError


def read_table(source: Path, *, format: str) -> list[str]:
    """The lines of a file."""
    lines = source.read_text().splitlines()
    if not lines:
        raise TableError("the file has no rows")
    return lines
