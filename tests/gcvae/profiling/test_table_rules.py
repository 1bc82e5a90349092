"""Rules of a schema meet their table: found, counted, or refused with the lines that break them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer
from gcvae.errors import SchemaError
from gcvae.files.table_reader import TableReader
from gcvae.profiling.infer import infer_schema
from gcvae.schema.columns import TableSchema
from tests.wordings import refuses

SUM = {"rule": "total == net + tax"}


def table() -> pd.DataFrame:
    """200 rows in which a sum holds but for one."""
    net = [100 + i * 37 % 91 for i in range(200)]
    tax = [i * 53 % 29 for i in range(200)]
    totals = [a + b + (17 if i == 44 else 0) for i, (a, b) in enumerate(zip(net, tax, strict=True))]
    return pd.DataFrame({"net": net, "tax": tax, "total": totals}).astype(str)


def shares(given: Any = None, **options: Any) -> dict[str, Any] | None:
    """The rules of the table's schema in words, with their shares."""
    rules = infer_schema(table(), given, **options).schema.rules
    return None if rules is None else {str(rule): rule.share for rule in rules}


def test_rules_are_found_where_the_schema_has_none() -> None:
    assert shares() == {"total == net + tax": 0.995}
    assert shares(rules=False) is None


def test_given_rules_are_taken_as_they_are_and_counted() -> None:
    given = {"rule": "total == net", "share": 1, "keep": "off"}
    assert shares({"rules": [given]}) == {"total == net": pytest.approx(7 / 200, abs=0.02)}
    assert shares({"rules": []}) == {}
    found = infer_schema(table()).schema
    assert infer_schema(table(), found).schema == found
    assert TableSchema.from_json(found.to_json()) == found


def test_a_hard_rule_that_rows_break_names_them(tmp_path: Any) -> None:
    document = {"rules": [SUM | {"keep": "hard"}]}
    with refuses(SchemaError, "/rules/0"):
        infer_schema(table(), document)
    path = tmp_path / "orders.csv"
    table().to_csv(path, index=False)
    with refuses(SchemaError):
        infer_schema(TableReader(path), document)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("total ≈ net + tax ± 16", 199 / 200),
        ("total <= net + tax", 199 / 200),
        ("total >= net + tax", 1.0),
        ("determines(net, tax; total)", 1.0),
        ("is_missing(note) == is_missing(name)", 30 / 60),
        ("is_missing(note) if is_missing(name)", 30 / 50),
    ],
)
def test_every_form_of_a_rule_is_counted_and_refused_where_it_is_hard(
    text: str, share: float
) -> None:
    note = ["" if i < 40 else "x" for i in range(200)]
    name = ["" if 10 <= i < 40 or i >= 180 else "x" for i in range(200)]
    rows = table().assign(note=note, name=name)
    given = {"rules": [{"rule": text, "keep": "hard" if share == 1.0 else "off"}]}
    [rule] = infer_schema(rows, given).schema.rules or ()
    assert rule.share == pytest.approx(share)
    if share < 1.0:
        with refuses(SchemaError, "/rules/0"):
            infer_schema(rows, {"rules": [{"rule": text, "keep": "hard"}]})


def test_a_hard_condition_that_rows_break_is_refused_too() -> None:
    kept, broken = ({"rule": f"total - net < {most}", "keep": "hard"} for most in (60, 25))
    assert len(infer_schema(table(), {"rules": [kept]}).schema.rules or ()) == 1
    with refuses(SchemaError, "/rules/0"):
        infer_schema(table(), {"rules": [broken]})


def test_a_rule_may_be_hard_beside_a_hard_rule_on_other_columns() -> None:
    days = [i * 7 % 60 for i in range(200)]
    rows = table().assign(low=days, high=[day + i % 9 for i, day in enumerate(days)]).astype(str)
    document = {
        "rules": [{"rule": "tax <= net", "keep": "hard"}, {"rule": "high >= low", "keep": "hard"}],
    }
    schema = infer_schema(rows, document).schema
    assert [rule.keep for rule in schema.rules or ()] == ["hard", "hard"]
    model = Synthesizer.fit(rows, schema=document, preset="fast", settings={"max_steps": 2})
    for each in (model, Synthesizer.from_bytes(model.to_bytes())):
        drawn = each.sample(100, seed=0).astype(int)
        assert (drawn["low"] <= drawn["high"]).all()
        assert (drawn["tax"] <= drawn["net"]).all()


@pytest.mark.parametrize("keep", ["soft", "hard"])
@pytest.mark.parametrize(
    "rule", ["total == 'blue' or tax > 1", "note > 3 or tax == 1", "note + 1 == tax or tax == 3"]
)
def test_types_that_do_not_fit_are_told_however_a_rule_is_kept(rule: str, keep: str) -> None:
    with_notes = table().assign(note=["a", "b"] * 100)
    with refuses(SchemaError, "/rules/0"):
        infer_schema(with_notes, {"rules": [{"rule": rule, "keep": keep}]})
    [off] = infer_schema(with_notes, {"rules": [{"rule": rule, "keep": "off"}]}).rules
    assert (off["rows"], off["rule"]["keep"]) == (0, "off")


def test_a_rule_that_is_off_may_not_fit_its_columns() -> None:
    given = {"rule": "total >= note", "keep": "off"}
    with_notes = table().assign(note=["a", "b"] * 100)
    [rule] = infer_schema(with_notes, {"rules": [given]}).schema.rules or ()
    assert rule.share is None


def test_what_is_found_is_told_with_its_exceptions() -> None:
    [told] = infer_schema(table()).rules
    assert told["formula"] == "total == net + tax"
    assert (told["rows"], told["kept"]) == (200, 199)
    assert told["exceptions"] == [{"row": 44, "line": None}]
    assert told["columns"] == ["total", "net", "tax"]


@pytest.mark.slow
def test_what_a_search_leaves_out_is_told() -> None:
    rows = np.random.default_rng(0).integers(0, 900, (120, 42)) / 10
    wide = pd.DataFrame(rows, columns=[f"n{j}" for j in range(42)])
    told = "formulas of two and three columns were searched only among the first 40 of 42 numeric"
    [note] = [note for note in infer_schema(wide).warnings if "searched only" in note]
    assert note.startswith(f"{told} columns; put")
    for given, table in ((None, wide.iloc[:, :40]), ({"rules": []}, wide)):
        assert not any("searched only" in note for note in infer_schema(table, given).warnings)


@pytest.mark.parametrize("keep", ["soft", "hard"])
@pytest.mark.parametrize(
    "text",
    ["total == net / (tax - tax)", "total <= net % 0", "total >= early + late"],
)
def test_a_given_formula_that_has_a_value_in_no_row_is_refused(
    text: str, keep: str, tmp_path: Path
) -> None:
    halves = [str(i % 37) if i < 100 else "" for i in range(200)]
    rows = table().assign(early=halves, late=halves[::-1])
    given = {"rules": [{"rule": text, "keep": keep}]}
    with refuses(SchemaError, "/rules/0"):
        infer_schema(rows, given)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    with refuses(SchemaError, "/rules/0"):
        infer_schema(tmp_path / "rows.csv", given)
    for other in ({"keep": "off"}, {"source": "found", "keep": "soft"}):
        [rule] = infer_schema(rows, {"rules": [{"rule": text} | other]}).schema.rules or ()
        assert rule.share is None
    assert infer_schema(rows, {"rules": [{"rule": "total == net / (tax - 5)"}]}).schema.rules


@pytest.mark.parametrize("find_rules", [True, False])
def test_a_strict_inequality_is_listed_once_and_kept_by_construction(find_rules: bool) -> None:
    rows = table().assign(high=[str(int(net) + 1 + i % 7) for i, net in enumerate(table()["net"])])
    texts = ["high > net", "net < total + 1 and tax >= 0"]
    given = {"rules": [{"rule": text, "keep": "hard"} for text in texts], "find_rules": find_rules}
    schema = infer_schema(rows, given).schema
    assert [rule.text for rule in schema.rules or () if rule.source == "given"] == texts
    assert not any("high" in rule.columns for rule in (schema.rules or ())[2:])
    model = Synthesizer.fit(rows, schema=given, preset="fast", settings={"max_steps": 2})
    assert "high" in model.codec.reduction.rewritten or "net" in model.codec.reduction.rewritten
    assert model.schema.rules == schema.rules
    drawn = model.sample(200, seed=1).astype(int)
    assert (drawn["high"] > drawn["net"]).all()
