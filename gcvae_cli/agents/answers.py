"""Answers of the MCP server's tools, with or without cells of tables.

Without cells, an answer contains only those members of the service's response that never contain
cells: names, kinds, counts, shares, scores and verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gcvae_client import JobError, ProblemError

Document = dict[str, Any]

_WITH_ROWS = "start `gcvae mcp` with --rows to see cells"
_LEAST_DISTINCT = 20  # with fewer distinct numbers, a mean may be a cell
_COLUMN = ("name", "kind", "drop", "personal", "decimals", "steps", "datetime_format")
_STATISTICS = ("name", "kind", "drop", "missing_share", "distinct")
_FIGURE = ("name", "label", "value", "floor", "interval", "verdict", "worse", "unit")
_JOB = ("id", "kind", "status", "model_id", "dataset_id", "result_id", "finished_at")
_PROGRESS = ("phase", "fraction", "seconds_left", "bound_held_out")
_SCORE = ("log_likelihood", "standard_error", "percentile", "anomaly", "odd_cell", "rare")
_PARTS = ("fidelity", "utility", "likelihood", "privacy")


def _members(document: Mapping[str, Any], names: Sequence[str]) -> Document:
    return {name: document[name] for name in names if document.get(name) is not None}


def dataset_answer(dataset: Document) -> Document:
    """Returns a dataset's name and size, and the number of its data-quality warnings."""
    known = _members(dataset, ("id", "name", "kind", "rows", "columns", "created_at"))
    tables = dataset.get("tables")
    known |= {} if tables is None else {"tables": [table["name"] for table in tables]}
    return known | {"warnings": len(dataset["warnings"])}


def model_answer(model: Document) -> Document:
    """Returns a model's name, state, preset and held-out log-likelihood."""
    names = ("id", "name", "kind", "status", "dataset_id", "job_id", "bound_held_out", "scoring")
    return _members(model, names) | {"preset": model["training"].get("preset")}


def job_answer(job: Document, rows: bool) -> Document:
    """Returns a job's state, progress and error.

    Args:
        rows: Whether the error's message, which may quote cells, is included.
    """
    known = _members(job, _JOB)
    known["progress"] = _members(job["progress"] or {}, _PROGRESS)
    if error := job["error"]:
        known["error"] = error if rows else {"code": error.get("code"), "message": _WITH_ROWS}
    return known


def schema_answer(dataset: Document, rows: bool) -> Document:
    """Returns the columns and rules of a dataset's schema; for a database, those of each table.

    Args:
        rows: Whether levels, limits, constants of rules and warnings are included.
    """
    schema = dataset["schema"]
    if rows:
        return _members(dataset, ("schema", "tables", "warnings"))
    if dataset["tables"] is None:
        return _table_schema(schema)
    return {
        "tables": {
            table["name"]: {"rows": table["rows"], **schema["tables"][table["name"]]}
            | _table_schema(table["schema"])
            for table in dataset["tables"]
        }
    }


def _table_schema(schema: Document) -> Document:
    columns = [
        _members(column, _COLUMN)
        | ({"n_levels": len(column["levels"])} if column.get("levels") else {})
        for column in schema.get("columns", ())
    ]
    rules = [
        _members(rule, ("keep", "source", "share")) | {"rule": _without_cells(rule)}
        for rule in schema.get("rules", ())
        if isinstance(rule.get("rule"), str)
    ]
    return {"columns": columns, "rules": rules}


def profile_answer(profile: Document, rows: bool) -> Document:
    """Returns statistics of columns.

    Args:
        rows: Whether quantiles, histograms and levels, which reveal cells, are included.
    """
    if rows:
        return profile
    columns = []
    for column in profile["columns"]:
        known = _members(column, _STATISTICS)
        if column["distinct"] >= _LEAST_DISTINCT and column["mean"] is not None:
            known |= _members(column, ("mean", "standard_deviation"))
        columns.append(known)
    return {"rows": profile["rows"], "columns": columns}


def rules_answer(rules: Sequence[Document], rows: bool) -> Document:
    """Returns the rules between columns, with the number of rows that satisfy each.

    Args:
        rows: Whether constants, lookup tables and the rows that violate a rule are included.
    """
    if rows:
        return {"rules": list(rules)}
    found = [
        {"formula": _without_cells(rule["rule"])} | _members(rule, ("columns", "rows", "kept"))
        for rule in rules
    ]
    return {"rules": found}


def _without_cells(rule: Document) -> str:
    """Returns the expression of a rule without constants, and the sizes of its lookup tables.

    >>> _without_cells({"rule": "fee == rate[plan] + 9", "tables": {"rate": {"G1": 2, "G2": 5}}})
    'fee == rate[plan] + …, rate: table of 2 levels'
    """
    sizes = {name: len(entries) for name, entries in rule.get("tables", {}).items()}
    words = (f", {name}: table of {size} levels" for name, size in sizes.items())
    return without_constants(rule["rule"]) + "".join(words)


def without_constants(formula: str) -> str:
    """Returns a formula with `…` instead of constants, which may be cells. Column names and the
    numbers 0, 1, 2 and 100 are kept.

    >>> without_constants("`o'area` <= 1_950.5e-3 * rooms + 100 or city == 'Rome'")
    "`o'area` <= … * rooms + 100 or city == …"
    """
    return _CONSTANT.sub(lambda found: found[1] or "…", formula)


_CONSTANT = re.compile(
    r"""(`(?:[^`]|``)*` | [^\W\d]\w* | (?<![\w.])(?:[012]|100)(?![\w.]))  # names, few numbers
    | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | \.?\d[\w.]*(?:(?<=[eE])[+-]\d+)?""",
    re.VERBOSE,
)


def report_answer(report: Document, rows: bool) -> Document:
    """Returns the verdicts and figures of a report.

    Args:
        rows: Whether details of columns, pairs and rules, which may quote cells, are included.
    """
    if rows:
        return report
    parts = {}
    for name in _PARTS:
        part = _members(report[name], ("verdict", "advice"))
        part["figures"] = [_members(figure, _FIGURE) for figure in report[name]["figures"]]
        parts[name] = part
    decisions = [_members(decision, ("of", "verdict")) for decision in report["decisions"]]
    return {"headline": report["headline"], "decisions": decisions, **parts}


def scores_answer(scores: Document) -> Document:
    """Returns the score of each row, with the contribution of each column."""
    lines = [_members(line, (*_SCORE, "contributions")) for line in scores["scores"]]
    return {"scores": lines, "totals": scores.get("totals")}


def _may_quote(problem: Document) -> bool:
    """True for an error about a cell, a level or a rule, not about the request."""
    pointer = str(problem.get("pointer") or "")
    is_of_table = any(problem.get(name) is not None for name in ("line", "row", "column"))
    return is_of_table or pointer.startswith(_QUOTED)


_QUOTED = ("/rows", "/given", "/distribution", "/schema", "/columns", "/rules", "/tables")


def error_text(error: Exception, rows: bool) -> str:
    """Returns the message of an error.

    Args:
        rows: Whether messages about invalid input, which may quote cells, are given in full.
    """
    if rows or not isinstance(error, ProblemError | JobError):
        return str(error)
    if isinstance(error, JobError):
        return f"job {error.job['id']} is {error.job['status']}; {_WITH_ROWS}"
    is_of_request = "limit" in error.problem or error.errors
    if error.status == 422 and (not is_of_request or any(map(_may_quote, error.errors))):
        places = [str(problem.get("pointer", "")) for problem in error.errors]
        where = f" at {', '.join(places)}" if any(places) else ""
        return f"{error.title}{where}; {_WITH_ROWS}"
    return str(error)
