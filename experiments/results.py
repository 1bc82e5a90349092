"""Stores results of experiments as JSON, after every line, so that an interrupted run loses only
the current fit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.budgets import OF_UCI_FITS, Budget

Line = dict[str, Any]


def keep(lines: Iterable[Line], budget: Budget, path: Path, before: Sequence[Line] = ()) -> None:
    """Writes results to a JSON file as they are made; the file is complete after each of them.

    Args:
        lines: Results, each a JSON object.
        budget: Budget, stored with the results.
        path: Path of the file.
        before: Results of an earlier run, to be written first.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    found = list(before)
    for line in lines:
        found.append(line)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps({"budget": asdict(budget), "lines": found}, indent=1) + "\n")
        partial.replace(path)
        print(path.stem, json.dumps(line), flush=True)


def read(path: Path) -> dict[str, Any] | None:
    """Returns the stored results of an experiment with their budget; None if it was not run."""
    if not path.is_file():
        return None
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def lines_to_continue(path: Path, budget: Budget) -> list[Line]:
    """Returns the stored results of a UCI table, to be continued by another run; empty if there are
    none.

    Raises:
        ValueError: The results were made with other values of the fields in `OF_UCI_FITS`.
    """
    found = read(path)
    if found is None:
        return []
    differ = [name for name in OF_UCI_FITS if found["budget"].get(name) != getattr(budget, name)]
    if differ:
        raise ValueError(f"{path} was made with another {', '.join(differ)}: run it anew")
    lines: list[Line] = found["lines"]
    return lines


def is_among(lines: Sequence[Line], **key: object) -> bool:
    """Returns whether one of the results contains all these members with these values."""
    return any(all(line.get(name) == value for name, value in key.items()) for line in lines)
