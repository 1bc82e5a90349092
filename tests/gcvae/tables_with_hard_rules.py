"""Generated tables that keep hard rules, with questions that may be asked of their models.

Names stand in any order and any script, cells may be missing, columns may be copies of each other,
dropped, made up or constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from hypothesis import strategies as st

from gcvae.cells.values import parse_table
from gcvae.profiling.infer import infer_schema
from gcvae.schema.columns import TableSchema
from gcvae.schema.expressions import quoted_name

NAMES = (
    "zulu", "Alpha", "b", "draw", "unit price", "it's \"so\"", "a,b", "10", "9", "0", "цена",
    "Артикул", "価格", "产品", "السعر", "🛒", "é", "/a~b", "contributions.b", "key", "self",
    "(hard rules)", "z" * 60,
)  # fmt: skip
"""Names of columns. An expression has its own in backticks, so none has one."""
SCRIPTS = {"Cyrillic": "цА", "CJK": "価产", "Arabic": "ا", "emoji": "🛒"}
"""A letter or two of each script, by which a name of it is known."""
LEVELS: dict[str, tuple[str, ...]] = {
    "categorical": ("lamp", "rug", "Ωmega", "дом", "青い"),
    "ordinal": ("low", "high", "mid", "10", "9"),
    "integer": ("10", "9", "-3", "100", "0"),
    "continuous": ("2.5", "10.25", "-0.5", "1e3", "9.0"),
    "boolean": ("yes", "no"),
    "datetime": ("2024-03-01", "2023-12-31", "2024-01-15", "1999-09-09", "2050-10-10"),
}
"""For each kind of column values that may repeat in combinations; the order counts for none but
`ordinal`, whose order this is."""
_DAY_ZERO = np.datetime64("2020-02-28")
_MARKERS = ("?", "NA", "")
_MARKERS_OF_COLUMNS = st.lists(st.sampled_from(_MARKERS), min_size=len(NAMES), max_size=len(NAMES))
_QUESTIONS = 16
Cells = list[str]
Generator = np.random.Generator


@dataclass(frozen=True)
class ConstrainedTable:
    """A table's cells as text, what is said of it, and what is asked of its model.

    Attributes:
        cells: In the table's order.
        given: A schema document, which leaves open what can be inferred.
        features: What the table has that others may not have.
        is_typed: Whether its cells come typed.
        conditions: Arguments of `Synthesizer.sample`, by what they are called.
        order: Of the columns, in a table that is handed to the model later.
        seed: Of what is drawn.
    """

    cells: dict[str, Cells]
    given: dict[str, Any]
    features: frozenset[str]
    is_typed: bool
    conditions: dict[str, dict[str, Any]]
    order: tuple[str, ...]
    seed: int

    @property
    def texts(self) -> pd.DataFrame:
        """The cells as they stand in a file."""
        return pd.DataFrame(self.cells, dtype=object)

    @property
    def frame(self) -> pd.DataFrame:
        """The table that a model is fitted to."""
        texts = self.texts
        typed = parse_table(texts, self.schema)  # but not a dropped column, which has no type
        if self.is_typed:
            texts[list(typed)] = typed
        return texts

    @property
    def schema(self) -> TableSchema:
        """Of the table."""
        return infer_schema(self.texts, self.given).schema

    @property
    def questions(self) -> pd.DataFrame:
        """Rows of the table, of which more is blank; a column's cells stand in other rows."""
        rng, rows = np.random.default_rng(self.seed), self.frame.head(_QUESTIONS)
        moved = self.order[0]
        rows[moved] = rows[moved].iloc[rng.permutation(len(rows))].to_numpy()
        return rows.mask(pd.DataFrame(rng.random(rows.shape) < 0.15, columns=rows.columns))


class _Parts:
    """A table as it comes together, column by column."""

    def __init__(self, names: Sequence[str], n_rows: int, rng: Generator) -> None:
        self.names = list(names)
        self.n_rows, self.rng = n_rows, rng
        self.cells: dict[str, Cells] = {}
        self.given: dict[str, dict[str, Any]] = {}
        self.hard_rules: list[dict[str, Any]] = []
        self.features: set[str] = set()
        self.whole: set[str] = set()

    def add(self, cells: Sequence[str], **said: Any) -> str:
        """The name of a further column, of which something may be said."""
        name = self.names.pop()
        self.cells[name] = list(cells)
        if said:
            self.given[name] = {**said, "name": name}
        if "kind" in said:
            self.features.add(f"kind {said['kind']}")
        return name

    def of_levels(self, kind: str, places: npt.NDArray[np.int64]) -> str:
        """A column of this kind, of which each cell is one of its levels."""
        levels = LEVELS[kind]
        found = sorted({int(place) % len(levels) for place in places})
        said = {"levels": [levels[place] for place in found]} if kind == "ordinal" else {}
        return self.add([levels[int(place) % len(levels)] for place in places], kind=kind, **said)

    def constrain(self, form: str, text: str) -> None:
        """Says something that holds in every row."""
        self.hard_rules.append({"rule": text, "keep": "hard"})
        self.features.add(form)


def _combinations(parts: _Parts, kinds: Sequence[str], names_from: int) -> None:
    """Columns that have few combinations, named in another order than the table's."""
    n_known = 4
    known = parts.rng.integers(0, 5, (n_known, len(kinds)))
    rows = known[parts.rng.integers(0, n_known, parts.n_rows)]
    names = [parts.of_levels(kind, rows[:, j]) for j, kind in enumerate(kinds)]
    if {"integer", "continuous", "datetime"} & set(kinds):
        parts.whole |= set(names)  # blanks would make of few combinations many that stand alone
    named = names[names_from:] + names[:names_from]
    parts.constrain("combinations", f"combinations({', '.join(map(quoted_name, named))})")
    parts.features.add(f"combinations of {len(named)}")
    if named != sorted(named):
        parts.features.add("combinations not in alphabetical order")


def _numbers(kind: str, values: npt.NDArray[np.int64]) -> Cells:
    """Whole numbers as cells of a kind, in their order."""
    if kind == "datetime":
        return [str(_DAY_ZERO + int(value)) for value in values]
    return [str(int(v)) if kind == "integer" else f"{v / 100:.2f}" for v in values]


def _inequality(parts: _Parts, kind: str, is_strict: bool) -> None:
    """Two columns of which one is never above the other."""
    low = parts.rng.integers(-200, 400, parts.n_rows)
    high = low + parts.rng.integers(is_strict, 500, parts.n_rows)
    # The higher one may stand first.
    pair = {name: parts.add(_numbers(kind, each), kind=kind)
            for name, each in (("high", high), ("low", low))}  # fmt: skip
    low_name, high_name = (quoted_name(pair[side]) for side in ("low", "high"))
    parts.constrain("inequality", f"{low_name} {'<' if is_strict else '<='} {high_name}")


def _expression(parts: _Parts) -> None:
    """Numbers that are small beside one level of another column."""
    number = parts.rng.integers(0, 400, parts.n_rows)
    level = parts.rng.integers(0, 3, parts.n_rows)
    half = int(np.median(number))
    number = np.where(level == level[0], np.minimum(number, half), number)
    name = parts.add(_numbers("integer", number), kind="integer")
    other = parts.of_levels("categorical", level)
    expression = f"`{name}` <= {half} or `{other}` != '{parts.cells[other][0]}'"
    parts.constrain("expression", expression)


def _unmodelled(parts: _Parts) -> None:
    """Columns that the model does not learn."""
    keys = [f"key {place}" for place in parts.rng.permutation(parts.n_rows)]
    parts.whole.add(parts.add(keys, kind="identifier"))
    parts.whole.add(parts.add(["x"] * parts.n_rows, kind="constant"))
    secrets = [f"secret {place}" for place in range(parts.n_rows)]
    parts.add(secrets, kind="categorical", drop=True)
    parts.features.add("dropped")


def _copies(parts: _Parts) -> None:
    """Two columns that equal another in every row, missing cells included."""
    kinds = {name: said.get("kind") for name, said in parts.given.items()}
    source = next(name for name, kind in kinds.items() if kind in LEVELS)
    for _ in range(2):
        parts.add(parts.cells[source], **parts.given[source])
    parts.features.add("copies")


def _missing(parts: _Parts, share: float, markers: Sequence[str]) -> None:
    """Makes cells missing, but of each level one, and none in columns that stay whole."""
    for (name, cells), marker in zip(parts.cells.items(), markers, strict=False):
        if name in parts.whole:
            continue
        is_missing = pd.Series(cells).duplicated() & (parts.rng.random(parts.n_rows) < share)
        if is_missing.any():
            parts.cells[name] = pd.Series(cells).mask(is_missing, marker).tolist()
            missing = {"allowed": True, "markers": [marker]}
            parts.given.setdefault(name, {"name": name})["missing"] = missing
            parts.features.add("missing cells")


def _conditions(parts: _Parts) -> dict[str, dict[str, Any]]:
    """What rows may be asked to be: as some rows of the table are, in some of its columns."""
    kinds = {name: said.get("kind") for name, said in parts.given.items() if "drop" not in said}
    of_levels = [c for c, kind in kinds.items() if kind in ("categorical", "ordinal", "boolean")]
    of_numbers = [c for c, kind in kinds.items() if kind == "integer"]
    first = of_levels[int(parts.rng.integers(len(of_levels)))]
    levels = [cell for cell in dict.fromkeys(parts.cells[first]) if cell not in _MARKERS][:2]
    given: dict[str, Any] = {first: levels}
    for name in of_numbers[:1]:
        values = [int(cell) for cell in parts.cells[name] if cell not in _MARKERS]
        given[name] = {"min": min(values), "max": max(values) + 0.5}
    shares = {level: 1.0 / len(levels) for level in levels}
    known = parts.rng.permutation([*of_levels, *of_numbers])[:3].tolist()
    rows = pd.DataFrame({name: parts.cells[name][:5] for name in known}, dtype=object)
    return {
        "given": {"given": given},
        "given_rows": {"given_rows": rows},
        "distribution": {"distribution": {first: shares}},
    }


def _features_of_names(names: Sequence[str]) -> set[str]:
    found = {script for script, letters in SCRIPTS.items() if set(letters) & set("".join(names))}
    found |= {"digits only"} if any(name.isdigit() for name in names) else set()
    return found | ({"names not in alphabetical order"} if list(names) != sorted(names) else set())


FEATURES = frozenset(
    {f"kind {kind}" for kind in (*LEVELS, "identifier", "constant")}
    | {"inequality", "combinations", "expression"}
    | {"combinations of 2", "combinations of 3", "combinations not in alphabetical order"}
    | {"copies", "dropped", "missing cells", "typed", "few rows", "any other column"}
    | {*SCRIPTS, "digits only", "names not in alphabetical order"}
)
"""What generated tables have, each in some of them."""


@st.composite
def tables_with_hard_rules(
    draw: st.DrawFn, others: Callable[[int], st.SearchStrategy[Cells]]
) -> ConstrainedTable:
    """Tables that satisfy what is said of them.

    Args:
        draw: By hypothesis.
        others: The cells of a column of any kind, of so many rows.
    """
    n_rows, seed = draw(st.sampled_from([48, 40, 44, 60, 6])), draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    parts = _Parts(rng.permutation(NAMES).tolist(), n_rows, rng)
    # Numbers and dates of few rows do not repeat, so that no combinations may be said of them.
    of_levels = rng.permutation(["boolean", "categorical", "ordinal"]).tolist()
    others_too = ["integer", "continuous", "datetime"] if n_rows > 10 else []
    more = rng.permutation([*of_levels[1:], *others_too])[: draw(st.integers(1, 2))]
    kinds = rng.permutation([of_levels[0], *more]).tolist()
    _combinations(parts, kinds, draw(st.integers(0, len(kinds) - 1)))
    _unmodelled(parts)
    wanted = draw(st.sets(st.sampled_from(["inequality", "expression"])))
    if "inequality" in wanted:
        kind = draw(st.sampled_from(["integer", "continuous", "datetime"]))
        _inequality(parts, kind, draw(st.booleans()))
    if "expression" in wanted:
        _expression(parts)
    if draw(st.booleans()):
        parts.add(draw(others(n_rows)))
        parts.features.add("any other column")
    _missing(parts, draw(st.sampled_from([0.0, 0.1, 0.4])), draw(_MARKERS_OF_COLUMNS))
    _copies(parts)
    names = rng.permutation([*parts.cells]).tolist()
    is_typed = draw(st.booleans())
    features = parts.features | _features_of_names(names)
    features |= {"typed"} if is_typed else set()
    features |= {"few rows"} if n_rows < 10 else set()
    return ConstrainedTable(
        {name: parts.cells[name] for name in names},
        {"columns": list(parts.given.values()), "rules": parts.hard_rules, "find_rules": True},
        frozenset(features),
        is_typed,
        _conditions(parts),
        tuple(rng.permutation(names).tolist()),
        seed,
    )
