"""Results of experiments as JSON, written after every line: a run that is cut off is kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.budgets import OF_UCI_FITS, Budget

Line = dict[str, Any]


def keep(lines: Iterable[Line], budget: Budget, path: Path, before: Sequence[Line] = ()) -> None:
    """Write the lines as they come after those from before, each time the whole file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = list(before)
    for line in lines:
        found.append(line)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps({"budget": asdict(budget), "lines": found}, indent=1) + "\n")
        partial.replace(path)
        print(path.stem, json.dumps(line), flush=True)


def read(path: Path) -> dict[str, Any] | None:
    """What was kept, or None where the experiment was not run."""
    if not path.is_file():
        return None
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def lines_to_continue(path: Path, budget: Budget) -> list[Line]:
    """The lines of a UCI table that are there, to be continued, if the fits are made alike.

    Raises: ValueError that names the fields of the budget that say otherwise.
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
    """Whether a line has these members."""
    return any(all(line.get(name) == value for name, value in key.items()) for line in lines)
