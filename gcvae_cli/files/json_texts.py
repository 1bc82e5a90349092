"""Parses JSON strictly, unlike Python's parser, which accepts NaN and duplicate keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gcvae_cli.errors import WrongUsageError


def read_json(text: str) -> Any:
    """Parses JSON text and returns its value.

    Raises:
        ValueError: The text is not valid JSON, contains NaN or Infinity, or an object contains a
            key twice.
    """
    return json.loads(text, parse_constant=_refused, object_pairs_hook=_members)


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is not a valid value")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the key {name!r} occurs twice")
    return dict(pairs)


def read_schema(path: Path | None) -> dict[str, Any] | None:
    """Returns the schema (JSON) in a file; None if the path is None.

    Raises:
        WrongUsageError: The file is not valid JSON.
    """
    if path is None:
        return None
    try:
        document = read_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise WrongUsageError(
            f"{path}: not valid JSON ({error}); write one with `gcvae schema`"
        ) from None
    return document  # type: ignore[no-any-return]
