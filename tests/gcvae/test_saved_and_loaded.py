"""What a synthesizer does after it was saved and loaded is what it did before, to the byte.

A manifest is written with its keys in alphabetical order, and numbers, dates and blanks become JSON
in it: whatever depends on an order or a type that JSON does not keep is another model's after
`load`. `make test-properties` tries the law on many more tables.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from hypothesis import event, given
from hypothesis import strategies as st

from gcvae import Synthesizer, TableReader
from gcvae.cells.values import format_table, parse_table
from gcvae.codec.table_codec import TableCodec
from gcvae.errors import HardRuleError, InputError
from gcvae.files.delimited import write_delimited
from gcvae.profiling.infer import infer_schema
from gcvae.sampling.hard_rules import HardRules
from gcvae.schema.columns import TableSchema
from gcvae.training.settings import PRESETS
from tests.gcvae.tables_with_hard_rules import FEATURES, ConstrainedTable, tables_with_hard_rules
from tests.gcvae.test_generated_tables import ALL_KINDS, QUICK, QUICK_AUTOREGRESSIVE, columns
from tests.lengths import PRESETS_TRIED, tries

pytestmark = pytest.mark.usefixtures("few_rows")

MAPS = ("total", "difference")
"""Kinds of map that cost many rows; each table has one of them drawn, if few rows are rejected."""


def _any_column(n_rows: int) -> st.SearchStrategy[list[str]]:
    return st.sampled_from(sorted(ALL_KINDS)).flatmap(lambda kind: columns(kind, n_rows))


TABLES = tables_with_hard_rules(_any_column)


def content(frame: pd.DataFrame) -> list[tuple[object, ...]]:
    """Everything that a table is: columns in order, their types, and every digit of every cell."""
    return [(name, str(cells.dtype), *map(repr, cells.tolist())) for name, cells in frame.items()]


def _refusal_or(ask: Callable[[], object]) -> object:
    """What is answered, or why nothing is."""
    try:
        found = ask()
    except InputError as error:
        return type(error).__name__, str(error)
    return content(found) if isinstance(found, pd.DataFrame) else found


def _asked(model: Synthesizer, table: ConstrainedTable) -> dict[str, Callable[[], object]]:
    """All that a synthesizer is asked, by what it is called."""
    seed, rows = table.seed, table.questions
    moved, n = rows[list(table.order)], len(rows.columns)
    first = rows.iloc[0].dropna()
    place = {name: cell for name, cell in first.items() if not isinstance(cell, pd.Timestamp)}
    acceptance = model.training_record["hard_rule_acceptance"]["share"]
    kind = MAPS[seed % len(MAPS)] if acceptance > 0.1 else "expected"

    def drawn(**conditions: Any) -> pd.DataFrame:
        return model.sample(None if "given_rows" in conditions else 30, seed, **conditions)

    return {
        "rows": drawn,
        "rows as text": lambda: format_table(drawn(), model.schema),
        **{name: lambda c=asked: drawn(**c) for name, asked in table.conditions.items()},
        "scores": lambda: model.log_likelihood(rows, draws=3, seed=seed),
        "scores of missing cells": lambda: model.log_likelihood(
            rows, draws=3, seed=seed, score_missingness=True, measure="rounding_cell"
        ),
        "scores, columns moved": lambda: model.log_likelihood(moved, draws=3, seed=seed),
        "encodings": lambda: model.encode(rows),
        "encodings, columns moved": lambda: model.encode(moved),
        "completed": lambda: model.impute(rows, seed=seed),
        "completed three times": lambda: model.impute(rows, 3, seed),
        "completed, columns moved": lambda: model.impute(moved, seed=seed)[list(rows.columns)],
        "map expected": lambda: model.dependencies("expected", seed).to_json(),
        "map data": lambda: model.dependencies("data").to_json(),
        "map local": lambda: model.dependencies("local", seed, row=place).to_json(),
        f"map {kind}": lambda: model.dependencies(kind, seed).to_json(),
        "an unknown column": lambda: model.log_likelihood(rows.assign(**{f"{n}?": 1}), draws=3),
    }


def answers(model: Synthesizer, table: ConstrainedTable) -> dict[str, object]:
    """What a synthesizer answers to everything, to the byte."""
    return {name: _refusal_or(ask) for name, ask in _asked(model, table).items()}


def _of_file(model: Synthesizer, rows: pd.DataFrame | TableReader) -> list[object]:
    """Scores, encodings and completed rows of a table, to the byte."""
    blocks = (
        lambda: model.score_blocks(rows, draws=3),
        lambda: model.encode_blocks(rows),
        lambda: model.impute_blocks(rows),
    )
    return [_refusal_or(lambda b=each: pd.concat(b(), ignore_index=True)) for each in blocks]


def _fit(table: ConstrainedTable, preset: str) -> Synthesizer | None:
    """A model of the table; None where too few of its rows keep the hard rules."""
    quick = QUICK_AUTOREGRESSIVE if PRESETS[preset].config.refinement else QUICK
    try:
        return Synthesizer.fit(table.frame, schema=table.given, preset=preset, settings=quick)
    except HardRuleError:
        return None


def holds(table: ConstrainedTable, preset: str, folder: Path) -> set[str]:
    """Asserts the law of a model of the table; gives what was answered and not refused."""
    fitted = _fit(table, preset)
    if fitted is None:
        return set()
    fitted.save(folder / "m.gcvae")
    loaded = Synthesizer.load(folder / "m.gcvae")
    data = (folder / "m.gcvae").read_bytes()
    assert fitted.to_bytes() == loaded.to_bytes() == Synthesizer.from_bytes(data).to_bytes() == data

    expected, found = answers(fitted, table), answers(loaded, table)
    for name in expected:
        assert found[name] == expected[name], name
    for name in ("scores", "encodings", "completed"):
        assert expected[f"{name}, columns moved"] == expected[name], name
    if not table.is_typed:
        path = folder / "rows.csv"
        path.write_bytes(b"".join(write_delimited(table.texts)))
        assert _of_file(loaded, TableReader(path)) == _of_file(fitted, table.texts)
    answered = {name for name, answer in expected.items() if not isinstance(answer, tuple)}
    return answered | {f"{len(fitted.codec.copies)} copies"}


@pytest.mark.filterwarnings("ignore::gcvae.codec.identifiers.WiderIdentifiersWarning")
@pytest.mark.parametrize("preset", PRESETS_TRIED)
def test_whatever_a_synthesizer_does_it_does_after_it_was_saved_and_loaded(
    preset: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    answered = Counter[str]()

    @tries(2)
    @given(table=TABLES)
    def each(table: ConstrainedTable) -> None:
        found = holds(table, preset, tmp_path_factory.mktemp("model"))
        answered.update(found)
        for name in found:
            event(name)

    each()
    never = {"rows", "given", "given_rows", "distribution", "scores", "completed"} - set(answered)
    assert not never, "asked of every table, and refused by all"


def _reordered(document: Any, *, backwards: bool) -> Any:
    """A document as another writer of JSON gives it: the keys of its objects in another order."""
    if isinstance(document, list):
        return [_reordered(item, backwards=backwards) for item in document]
    if not isinstance(document, dict):
        return document
    names = sorted(document, reverse=backwards)
    return {name: _reordered(document[name], backwards=backwards) for name in names}


@tries(15)
@given(table=TABLES, backwards=st.booleans())
def test_documents_mean_the_same_whatever_the_order_of_their_keys(
    table: ConstrainedTable, backwards: bool
) -> None:
    def there_and_back(document: object) -> Any:
        return json.loads(json.dumps(_reordered(document, backwards=backwards), allow_nan=False))

    schema = infer_schema(table.frame, table.given).schema
    again = TableSchema.from_json(there_and_back(schema.to_json()))
    assert (again, repr(again)) == (schema, repr(schema))

    typed, rows = parse_table(table.frame, schema), parse_table(table.questions, schema)
    for encoding in ("quantile", "standardised"):
        codec = TableCodec.fit(typed, schema, encoding=encoding)
        back = TableCodec.from_json(there_and_back(codec.to_json()))
        assert list(back.copies.items()) == list(codec.copies.items())
        encoded, found = (c.encode(rows, blanks_unknown=True) for c in (codec, back))
        for name in ("codes", "values", "observed"):
            assert torch.equal(getattr(found, name), getattr(encoded, name)), name
        assert content(back.decode(encoded)) == content(codec.decode(encoded))

    hard_rules = HardRules.fit(typed, schema)
    held = HardRules.from_json(again, there_and_back(hard_rules.to_json()))
    assert held.kept(typed).all()
    assert (held.kept(rows) == hard_rules.kept(rows)).all()


def test_of_two_copies_the_first_in_the_table_fills_a_blank_after_load_too() -> None:
    cells = [f"level {i % 4}" for i in range(40)]
    table = pd.DataFrame({"own": cells, "zulu": cells, "alpha": cells, "other": cells[::-1]})
    fitted = Synthesizer.fit(table, settings=QUICK_AUTOREGRESSIVE)
    loaded = Synthesizer.from_bytes(fitted.to_bytes())
    assert list(loaded.codec.copies) == ["zulu", "alpha"]
    rows = pd.DataFrame(
        {"own": [None], "zulu": ["level 1"], "alpha": ["level 2"], "other": ["level 0"]}
    )
    for model in (fitted, loaded):
        assert model.encode(rows).equals(fitted.encode(rows.assign(own="level 1")))


@pytest.mark.slow
def test_the_generated_tables_have_each_feature_between_them() -> None:
    seen = Counter[str]()

    @tries(72)
    @given(table=TABLES)
    def each(table: ConstrainedTable) -> None:
        assert len(table.schema)
        seen.update(table.features)

    each()
    assert set(seen) >= FEATURES, FEATURES - set(seen)
