"""What a job's process reports to its supervisor."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from catalog import Document, Failed, Outcome

ValueT = TypeVar("ValueT")

SERVER_AWAY = "server_away"
"""Code of an attempt that failed because the database or the store did not answer."""


@dataclass(frozen=True)
class TryAgain:
    """Another attempt may succeed where this one failed.

    Attributes:
        smaller_batch: it shall take half the batch.
    """

    failed: Failed
    smaller_batch: bool = False


LastMessage = Outcome | TryAgain
Message = Document | LastMessage
"""Progress, as a document, or the last message."""


def finite(value: ValueT) -> ValueT:
    """The same message with None for numbers that JSON does not have (NaN, infinities)."""
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
