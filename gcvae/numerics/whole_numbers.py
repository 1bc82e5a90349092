"""Validates integer arguments, without importing torch."""

from __future__ import annotations

import operator
from typing import Any

from gcvae.errors import Problem, SettingError


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Returns the argument `name` as an int, if it is an integer from `least` to `most`, or to
    infinity if `most` is None. NumPy integers are accepted, a bool is not.

    Raises:
        SettingError: The value is not an integer or out of range; the message contains `name`.
    """
    range_ = f"at least {least}" if most is None else f"from {least} to {most}"
    problem = Problem(f"{name} is {value!r}", f"/{name}", expected=f"a whole number, {range_}")
    if isinstance(value, bool):
        raise SettingError(problem)
    try:
        number = operator.index(value)
    except TypeError:
        raise SettingError(problem) from None
    if number < least or (most is not None and number > most):
        raise SettingError(problem)
    return number
