"""Converts rules of older schema documents, `{"kind": "sum", ...}`, to expressions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from gcvae.schema.expressions import quoted_name
from gcvae.schema.rules import dependency, missingness, sum_text, term_text

_KEPT = {"model": "soft", "demand": "hard", "drop": "off"}


def rule_of_kind(given: Mapping[str, Any], dates: Collection[str]) -> dict[str, Any]:
    """Converts a rule of older versions, which had a kind and no expression, to one with an
    expression.

    Args:
        dates: Names of date columns, which older versions counted in seconds.

    Raises:
        ValueError: The kind is unknown, or members are missing or malformed.
    """
    kind = given["kind"]
    if not isinstance(kind, str) or kind not in _TEXTS:
        raise ValueError("unknown kind of rule")
    common = {key: given[key] for key in ("source", "share") if key in given}
    keep = given.get("keep", "soft")
    common["keep"] = _KEPT.get(keep, keep) if isinstance(keep, str) else keep
    try:
        return {"rule": _TEXTS[kind](given, dates), **common}
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError, ValueError):
        raise ValueError(f"malformed {kind}") from None


def _order_text(given: Mapping[str, Any], _: Collection[str]) -> str:
    low, high = quoted_name(given["low"]), quoted_name(given["high"])
    return " or ".join([f"{high} >= {low}", *(f"{high} == {x!r}" for x in given.get("beside", ()))])


def _sum_text(given: Mapping[str, Any], dates: Collection[str]) -> str:
    terms = dict(given["terms"])
    is_date = given["column"] in dates
    days = [name for name in terms if name in dates]
    parts = []
    for name, factor in terms.items():
        is_number = name not in dates
        parts.append((factor / 86_400 if is_date and is_number else factor, quoted_name(name)))
    constant = given.get("constant", 0)
    if is_date or not days:
        if is_date:
            parts = [(1, quoted_name(days[0])), *(p for p in parts if p[1] != quoted_name(days[0]))]
        text = sum_text(parts, constant / 86_400 if is_date else constant)
        y = quoted_name(given["column"])
        more = (
            [x for x in given.get("remainders", ()) if x] if given.get("keep") == "demand" else []
        )
        return " or ".join([f"{y} == {text}", *(f"{y} == {text}{term_text(x, '')}" for x in more)])
    rising = sorted(days, key=lambda name: terms[name])
    start, end = rising[0], rising[-1]
    if not terms[start] < 0 < terms[end]:
        raise ValueError("malformed sum")
    others = [part for part in parts if part[1] not in (quoted_name(end), quoted_name(start))]
    span = f"{quoted_name(end)} - {quoted_name(start)}"
    factor = 86_400 * terms[end]
    is_alone = factor == 1 and not others and not constant
    text = span if is_alone else sum_text([(factor, f"({span})"), *others], constant)
    return f"{quoted_name(given['column'])} == {text}"


def _product_text(given: Mapping[str, Any], _: Collection[str]) -> str:
    a, b = (quoted_name(name) for name in given["factors"])
    return f"{quoted_name(given['column'])} == {sum_text([(given.get('factor', 1), f'{a} * {b}')])}"


def _clock_text(given: Mapping[str, Any], _: Collection[str]) -> str:
    y, start, minutes = (quoted_name(given[key]) for key in ("column", "start", "minutes"))
    midnight = ", 2400" if given.get("midnight") == 2400 else ""
    return f"{y} == clock({start}, {minutes}{midnight})"


def _date_part_text(given: Mapping[str, Any], _: Collection[str]) -> str:
    of = quoted_name(given["of"]) + (f', "{given["zone"]}"' if given.get("zone") else "")
    part = str(given["part"])
    if part != "weekday":
        return f"{quoted_name(given['column'])} == {part}({of})"
    monday = given.get("monday", 0)
    return f"{quoted_name(given['column'])} == {_weekday_text(of, monday, given.get('sunday'))}"


def _weekday_text(of: str, monday: int, sunday: int | None) -> str:
    """Returns an expression, as a string, that computes the number of a date's weekday.

    Args:
        of: Expression of the date, such as a column name.
        monday: Number that stands for Monday.
        sunday: Number that stands for Sunday; None if it follows Saturday's.
    """
    day = f"day_of_week({of})"
    if (monday, sunday) == (1, 0):
        return f"({day} + 1) % 7"
    if monday == 2:
        return f"({day} + 1) % 7 + 1"
    return f"{day} + 1" if monday == 1 else day


def _function_text(given: Mapping[str, Any], _: Collection[str]) -> str:
    return dependency(tuple(given["of"]), given["column"])


def _blanks_text(given: Mapping[str, Any], _: Collection[str]) -> str:
    return missingness(
        given["of"], given["column"], is_same=given.get("relation", "same") == "same"
    )


_Text: TypeAlias = Callable[[Mapping[str, Any], Collection[str]], str]
_TEXTS: dict[str, _Text] = {
    "order": _order_text,
    "sum": _sum_text,
    "product": _product_text,
    "clock": _clock_text,
    "date_part": _date_part_text,
    "function": _function_text,
    "blanks": _blanks_text,
}
