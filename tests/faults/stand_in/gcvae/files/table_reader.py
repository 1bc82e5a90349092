"""Tables as lines of text."""

from __future__ import annotations

from pathlib import Path

from gcvae.errors import TableError


class TableReader:
    """The lines of a file, the first its header."""

    def __init__(self, path: Path, encoding: str | None = None) -> None:
        self.lines = path.read_text(encoding=encoding or "utf-8").splitlines()
        if not self.lines:
            raise TableError("the file has no rows")
        self.fraction, self.rows = 1.0, len(self.lines) - 1
