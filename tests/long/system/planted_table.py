"""A table with a text of its own in every kind of column and every role that a cell may have.

Each row of the page `docs/privacy.md` is a role; `PLANTS` says what stands for it in this table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

N_ROWS = 300
_MIDDLE = slice(140, 160)  # rows that share a value: the median
_ONCE, _LAST = 77, N_ROWS - 1


def token(name: str) -> str:
    """A word that stands nowhere else."""
    return f"q{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def _is_token(word: str) -> bool:
    return word.startswith("q") and len(word) == len(token(""))


@dataclass(frozen=True)
class Plant:
    """What stands for a role.

    Attributes:
        columns: That hold it.
        texts: Any of which would be found; of a number its digits.
        numbers: The same as numbers; a date in nanoseconds, seconds and days since 1970.
        misfit: What a request says of the column that does not fit this cell.
    """

    columns: tuple[str, ...]
    texts: tuple[str, ...]
    numbers: tuple[float, ...] = ()
    misfit: Mapping[str, Any] = field(default_factory=dict)


def _levels(*chosen: str, run: int = 1) -> list[str]:
    """Two levels in turns of `run` rows, and another in one row."""
    cells = [chosen[i // run % 2] for i in range(N_ROWS)]
    cells[_ONCE] = chosen[2]
    return cells


def _numbers(low: float, high: float, decimals: int) -> list[str]:
    """Rising numbers, one of them in the rows of the middle; the last one far off."""
    values = np.linspace(low, high, N_ROWS) + np.random.default_rng(1).random(N_ROWS)
    values[_MIDDLE] = values[150]
    values[_LAST] += 1.037 * high  # no plain number, which limits are
    return [f"{value:.{decimals}f}" for value in values]


def _dates() -> list[str]:
    seconds = pd.to_datetime([int(float(n)) for n in _numbers(6e8, 9e8, 0)], unit="s")
    return [f"{time:%Y-%m-%d %H:%M:%S}" for time in seconds]


def _words(name: str) -> list[str]:
    """A text of its own in each row."""
    return [f"{token(name)} é{token(f'{name} {i}')} it was so" for i in range(N_ROWS)]


def _kept() -> dict[str, list[str]]:
    constant = f"country {token('constant')}"
    numbers = [str(i % 40 + 20) for i in range(N_ROWS)]
    shades = _levels("light", "dark", "grey")
    for row in range(0, 60, 2):
        numbers[row], shades[row] = token("marker of numbers"), token("marker of levels")
    return {
        "city": _levels(*(f'{word} "{token(f"city {word}")}"' for word in ("north", "south", "é"))),
        # not determined by the city, of which the level of one row is suppressed
        "grade": _levels(*(token(f"grade {i}") for i in range(3)), run=2),
        "member": [token(f"member {i % 2}") for i in range(N_ROWS)],
        "visited": _dates(),
        "units": _numbers(1e11, 8e11, 0),
        f"amount {token('kept name')}": _numbers(1e5, 8e5, 3),
        f"code {token('identifier name')}": [f"{token(f'code {i}')}" for i in range(N_ROWS)],
        "client_id": [str(500_300_000 + 7919 * i) for i in range(N_ROWS)],
        "comment": _words("comment"),
        "remark": _words("remark"),
        "country": [constant] * N_ROWS,
        "size": numbers,
        "shade": shades,
    }


_DROPPED: dict[str, Callable[[str], list[str]]] = {
    "categorical": lambda name: _levels(*(token(f"{name} {i}") for i in range(3))),
    "ordinal text": lambda name: _levels(*(token(f"{name} {i}") for i in range(3))),
    "boolean": lambda name: [token(f"{name} {i % 2}") for i in range(N_ROWS)],
    "datetime": lambda _: [f"{1950 + i % 9}-03-{i % 28 + 1:02d} 07:{i % 60:02d}:41"
                           for i in range(N_ROWS)],
    "integer": lambda _: _numbers(3e14, 4e14, 0),
    "continuous": lambda _: _numbers(3e7, 4e7, 4),
    "identifier": lambda name: [token(f"{name} {i}") for i in range(N_ROWS)],
    "constant": lambda name: [token(name)] * N_ROWS,
    "free text": _words,
    "missing marker": lambda name: [token(name) if i % 3 else str(i) for i in range(N_ROWS)],
}  # fmt: skip


def _said_of(kind: str, cells: list[str]) -> dict[str, Any]:
    """What is said of a column of this kind, beside that it is dropped."""
    if kind in ("ordinal text", "boolean"):
        return {"kind": kind.split()[0], "levels": list(dict.fromkeys(cells))}
    if kind == "missing marker":
        return {"missing": {"markers": [cells[1]]}}
    return {"kind": "categorical"} if kind == "free text" else {}


def _dropped_name(kind: str, when: str) -> str:
    return f"dropped {kind} {when} {token('dropped name')}"


def dropped(when: str) -> dict[str, list[str]]:
    """Columns of every kind that are dropped `at once` or `later`."""
    return {_dropped_name(kind, when): cells(f"{kind} {when}") for kind, cells in _DROPPED.items()}


def frame() -> pd.DataFrame:
    """The table, as text."""
    return pd.DataFrame(_kept() | dropped("at once") | dropped("later"), dtype=object)


def said(*, all_dropped: bool) -> list[dict[str, Any]]:
    """What is said of the columns, of dropped ones more than that they are dropped."""
    kept = _kept()
    columns: list[dict[str, Any]] = [
        {"name": "grade", "kind": "ordinal", "levels": list(dict.fromkeys(kept["grade"]))},
        {"name": "member", "kind": "boolean", "levels": list(dict.fromkeys(kept["member"]))},
        {"name": "remark", "kind": "categorical"},
        {"name": "size", "missing": {"markers": [token("marker of numbers")]}},
        {"name": "shade", "missing": {"markers": [token("marker of levels")]}},
    ]
    for when in ("at once", "later"):
        drop = {"drop": True} if all_dropped or when == "at once" else {}
        for kind, (name, cells) in zip(_DROPPED, dropped(when).items(), strict=True):
            columns.append({"name": name, **_said_of(kind, cells), **drop})
    return columns


def _dates_in_numbers(text: str) -> tuple[float, ...]:
    nanoseconds = pd.Timestamp(text).value
    return tuple(nanoseconds / unit for unit in (1.0, 1e9, 86_400e9))


def _cell(column: str, row: int, *, is_date: bool = False) -> Plant:
    """A cell of a column that is kept, which only a level list without it does not fit."""
    cells = _KEPT[column]
    text = cells[row]
    is_number = text.replace(".", "").isdigit()
    numbers = _dates_in_numbers(text) if is_date else (float(text),) if is_number else ()
    others = [cell for cell in dict.fromkeys(cells) if cell != text]
    misfit = {"kind": "categorical", "levels": others or ["another"]}
    words = [word.strip('"é') for word in text.split()]
    tokens = tuple(word for word in words if _is_token(word))
    return Plant((column,), tokens[-1:] or (text,), numbers, misfit)


def _any_cell(column: str) -> Plant:
    """All cells of a column that is kept, each of them in one row."""
    cells = [_cell(column, row) for row in range(N_ROWS)]
    texts = tuple(text for cell in cells for text in cell.texts)
    return replace(
        cells[_ONCE], texts=texts, numbers=tuple(n for cell in cells for n in cell.numbers)
    )


def _of_dropped(kind: str) -> Plant:
    """All cells of the columns of this kind that are dropped."""
    names = [_dropped_name(kind, when) for when in ("at once", "later")]
    tables = dropped("at once") | dropped("later")
    cells = list(dict.fromkeys(cell for name in names for cell in tables[name]))
    words = dict.fromkeys(word.strip("é") for cell in cells for word in cell.split())
    if kind == "datetime":
        dates = tuple(number for cell in cells for number in _dates_in_numbers(cell))
        return Plant(tuple(names), tuple(cells), dates)
    if kind in ("integer", "continuous"):
        return Plant(tuple(names), tuple(cells), tuple(float(cell) for cell in cells))
    return Plant(tuple(names), tuple(word for word in words if _is_token(word)))


TIED = f"units - 1000000 * `amount {token('kept name')}`"
"""An expression that is near 0 in every row of the table, and in none of an untrained model."""


def _plants() -> dict[str, Plant]:
    amount = f"amount {token('kept name')}"
    code = f"code {token('identifier name')}"
    gone = _dropped_name("categorical", "at once")
    not_missing = {"missing": {"allowed": False}}
    plants = {f"dropped: {kind}": _of_dropped(kind) for kind in _DROPPED}
    plants |= {
        "name of a dropped column": Plant((gone,), (token("dropped name"),)),
        "name of an identifier": Plant((code,), (token("identifier name"),), misfit={"kind": "x"}),
        "name of any other column": Plant((amount,), (token("kept name"),), misfit={"kind": "x"}),
        "identifier: text": _any_cell(code),
        "identifier: number": _any_cell("client_id"),
        "free text, taken as an identifier": _any_cell("comment"),
        "free text, declared categorical": _any_cell("remark"),
        "categorical: level of many rows": _cell("city", 0),
        "categorical: level of one row": _cell("city", _ONCE),
        "ordinal text: level of many rows": _cell("grade", 0),
        "ordinal text: level of one row": _cell("grade", _ONCE),
        "boolean: word": _cell("member", 0),
        "constant": _cell("country", 0),
        "missing marker among numbers": Plant(
            ("size",), (token("marker of numbers"),), misfit=not_missing
        ),
        "missing marker among levels": Plant(
            ("shade",), (token("marker of levels"),), misfit=not_missing
        ),
    }
    for kind, column in (("datetime", "visited"), ("integer", "units"), ("continuous", amount)):
        for role, row in (("value of many rows", 150), ("value of one row", _ONCE),
                          ("largest value", _LAST)):  # fmt: skip
            plants[f"{kind}: {role}"] = _cell(column, row, is_date=kind == "datetime")
    return plants


_KEPT = _kept()
PLANTS = _plants()
