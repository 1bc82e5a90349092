"""Strict JSON parser for users' texts; Python's accepts more than JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gcvae_cli.errors import WrongUsageError


def read_json(text: str) -> Any:
    """Parses JSON, without Python's constants and duplicate keys.

    Raises:
        ValueError: The text is invalid.
    """
    return json.loads(text, parse_constant=_refused, object_pairs_hook=_members)


def _refused(constant: str) -> Any:
    """NaN and the infinities are Python's, not JSON's."""
    raise ValueError(f"{constant} is not a valid value")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns an object, and refuses duplicate keys, of which Python would ignore the first."""
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the key {name!r} occurs twice")
    return dict(pairs)


def read_schema(path: Path | None) -> dict[str, Any] | None:
    """Returns the schema document in a file; None without a file.

    Raises:
        WrongUsageError: It is not JSON.
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
