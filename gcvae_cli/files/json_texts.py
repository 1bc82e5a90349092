"""JSON texts that users give: read strictly, for Python reads more than JSON has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gcvae_cli.errors import WrongUsageError


def read_json(text: str) -> Any:
    """The value of a JSON text without Python's constants, each key of an object once.

    Raises:
        ValueError: it is none.
    """
    return json.loads(text, parse_constant=_refused, object_pairs_hook=_members)


def _refused(constant: str) -> Any:
    """NaN and the infinities are Python's, not JSON's."""
    raise ValueError(f"{constant} is not a valid value")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys stand once each; of two the first would be lost without a word."""
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the key {name!r} occurs twice")
    return dict(pairs)


def read_schema(path: Path | None) -> dict[str, Any] | None:
    """The schema document in a file, where there is one.

    Raises:
        WrongUsageError: it is no JSON.
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
