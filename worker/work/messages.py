"""Messages that a job's process sends to its supervisor."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from catalog import Document, Failed, Outcome

ValueT = TypeVar("ValueT")

SERVER_AWAY = "server_away"
"""Error code of an attempt that failed because the database or the store did not respond."""


@dataclass(frozen=True)
class TryAgain:
    """Final message of a failed attempt that may succeed when it is repeated.

    Attributes:
        failed: The error.
        smaller_batch: Whether the next attempt should use half the batch size.
    """

    failed: Failed
    smaller_batch: bool = False


LastMessage = Outcome | TryAgain
Message = Document | LastMessage
"""Progress as a JSON object, or the final message."""


def finite(value: ValueT) -> ValueT:
    """Returns a message in which None replaces NaN and infinities, which JSON cannot represent."""
    made: Any = value
    if is_dataclass(value) and not isinstance(value, type):
        changes = {field.name: finite(getattr(value, field.name)) for field in fields(value)}
        made = replace(value, **changes)
    elif isinstance(value, dict):
        made = {key: finite(item) for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        made = type(value)(finite(item) for item in value)
    elif isinstance(value, float) and not math.isfinite(value):
        made = None
    found: ValueT = made
    return found
