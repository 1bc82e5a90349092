"""The member `never` of a column's document: dates such as 9999-12-31."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gcvae.errors import Problem


def read_never(value: Any) -> tuple[str, ...]:
    """The texts of a list. Raises: ValueError, whose text is what would be right."""
    from gcvae.spelling.never_dates import MOST_NEVER

    are_texts = isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)
    if not are_texts or len(set(value)) < len(value) or len(value) > MOST_NEVER:
        example = '["9999-12-31"]'
        raise ValueError(f"a list of at most {MOST_NEVER} dates as they are written: {example}")
    return tuple(value)


def no_never_dates(draft: Mapping[str, Any], pointer: str) -> list[Problem]:
    """The problems of texts in a complete draft that are no dates for never."""
    if not draft.get("never"):
        return []
    from gcvae.spelling.never_dates import is_far

    date_format = draft.get("datetime_format")
    wrong = [x for x in draft["never"] if date_format is None or not is_far(x, date_format)]
    expected = f"dates of the format {date_format} that nanoseconds do not reach: 9999-12-31"
    return [
        Problem(f"never can not be {x!r}", f"{pointer}/never", None, draft.get("name"), expected)
        for x in wrong
    ]
