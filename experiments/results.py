"""Results of experiments as JSON, written after every line: a run that is cut off is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.budgets import Budget


def keep(lines: Iterator[dict[str, Any]], budget: Budget, path: Path) -> None:
    """Write the lines as they come, each time the whole file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
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
