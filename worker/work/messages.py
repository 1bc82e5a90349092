"""Messages from a job's process to its supervisor."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from catalog import Document, Failed, Outcome

ValueT = TypeVar("ValueT")

SERVER_AWAY = "server_away"
"""Error code of an attempt that failed because database or store did not respond."""


@dataclass(frozen=True)
class TryAgain:
    """Final message of a failed attempt that may succeed when repeated.

    Attributes:
        smaller_batch: Whether to use half the batch size.
    """

    failed: Failed
    smaller_batch: bool = False


LastMessage = Outcome | TryAgain
Message = Document | LastMessage
"""Progress as a document, or the final message."""


def finite(value: ValueT) -> ValueT:
    """Returns the message with None for NaN and infinities, which JSON lacks."""
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
