"""Hostile and odd files, and real tables, are read or refused as by the reader before this one.

`read_before.json` has what that reader answered: names, cells and lines of what it read, the lines
of the problems of what it refused. Where an answer was changed on purpose, the case has what is
right `now`, and a reason of these.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gcvae import read_table
from gcvae.errors import TableError

GOLDEN = Path(__file__).with_name("read_before.json")
REASONS = {
    "open quote": "a quote that nothing closes, or that text follows, was read where it came last",
    "carriage return": "one that stands alone ends a line of every file, not only of those in which"
    " it ends the first; within quotes it stays what it is, and was a line feed in such files",
    "header line": "a header whose quote nothing closes had no line",
    "first fault": "of a file with several faults another one, or some of them, is named: what"
    " records there are is settled before their cells are counted",
}
BEFORE = json.loads(GOLDEN.read_text("utf-8"))


def data_of(case: dict[str, Any]) -> bytes:
    """The bytes of a file: as text, or in base 64, gzipped where they are many."""
    if "text" in case:
        return str(case["text"]).encode()
    data = base64.b64decode(case["base64"])
    return gzip.decompress(data) if case.get("gzipped") else data


def answer_of(data: bytes, encoding: str | None) -> dict[str, Any]:
    """Names, separator, rows (their checksum where they are long) and lines, of rows that follow
    each other the first; or the lines of the problems."""
    try:
        frame = read_table(data, encoding=encoding)
    except TableError as error:
        return {"refused": [problem.line for problem in error.problems]}
    rows, lines = frame.to_numpy().tolist(), lines_of(frame)
    whole = hashlib.sha256(json.dumps(rows).encode()).hexdigest() if len(data) > 5000 else rows
    are_next = None not in lines and lines == list(range(lines[0], lines[0] + len(lines)))
    return {
        "names": list(frame.columns),
        "separator": frame.attrs["separator"],
        "rows": whole,
        "lines": lines[0] if are_next else lines,
    }


def lines_of(frame: pd.DataFrame) -> list[Any]:
    return [frame.attrs["lines"][label] for label in frame.index]


def test_hostile_and_odd_files_are_read_or_refused_as_before() -> None:
    assert len(BEFORE["cases"]) > 900
    wrong = []
    for case in BEFORE["cases"]:
        found = answer_of(data_of(case), case.get("encoding"))
        if found != case.get("now", case["answer"]):
            wrong.append((data_of(case)[:200], case["answer"], found))
    assert wrong == []


def test_what_is_answered_otherwise_has_a_reason() -> None:
    changed = [case for case in BEFORE["cases"] if "now" in case]
    assert {case["because"] for case in changed} == set(REASONS)
    for case in changed:
        if case["because"] != "open quote":  # and no file is read that was refused
            assert ("refused" in case["answer"]) == ("refused" in case["now"])
        assert case["because"] != "open quote" or "refused" in case["now"]


@pytest.mark.parametrize("name", sorted(BEFORE["tables"]))
def test_real_tables_are_read_as_before(name: str, data_dir: Path) -> None:
    if not (data_dir / name).exists():
        pytest.skip(f"there is no table {name} in {data_dir}")
    frame, digest = read_table(data_dir / name), hashlib.sha256()
    for column in frame.columns:
        digest.update(json.dumps([column, frame[column].tolist()]).encode())
    lines = lines_of(frame)
    assert BEFORE["tables"][name] == {
        "columns": len(frame.columns),
        "rows": len(frame),
        "separator": frame.attrs["separator"],
        "cells": digest.hexdigest(),
        "first_line": lines[0],
        "last_line": lines[-1],
    }
