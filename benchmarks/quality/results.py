"""The results as one JSON file, written after every run, so that an interrupted benchmark goes on.

{"version": 1,
 "tables": {"adult": {"rows": ..., "floors": {...}, "test": {...}}},
 "runs": [{"table": "adult", "model": "default", "settings": {}, "seed": 0, "measured_at": ...,
           "versions": {...}, "cost": {...}, "shape": ..., ...}]}
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import gcvae
from benchmarks.quality.models import OTHERS, PRESET_NAMES

FORMAT_VERSION = 1
MEASURES = 2
"""Rises when the meaning of a figure changes: what was measured before is measured again."""
Run = dict[str, Any]


class ResultsError(Exception):
    """A file is not one of results."""


@dataclass
class Results:
    """Tables and runs; `path` is None for results that are not kept."""

    path: Path | None
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path) -> Self:
        """The results of a file, or none yet. Figures that mean something else are left out.

        Raises:
            ResultsError: The file is something else.
        """
        if not path.exists():
            return cls(path)
        try:
            document = json.loads(path.read_text())
            if document["version"] != FORMAT_VERSION:
                raise ResultsError(f"{path} has version {document['version']}, not 1")
            tables = {t: about for t, about in document["tables"].items() if _is_comparable(about)}
            return cls(path, tables, [run for run in document["runs"] if _is_comparable(run)])
        except (ValueError, KeyError, TypeError) as error:
            raise ResultsError(f"{path} holds no results: {error!r}") from None

    def merge(self, other: Results) -> None:
        """Takes over the runs and tables that these results do not have."""
        own = {_key(run) for run in self.runs}
        self.runs += [run for run in other.runs if _key(run) not in own]
        self.tables = other.tables | self.tables

    def has(self, table: str, model: str, settings: Mapping[str, Any], seed: int) -> bool:
        """Whether this run was done with the same code."""
        wanted = {"table": table, "model": model, "settings": dict(settings), "seed": seed}
        return any(
            _key(run) == _key(wanted) and "failed" not in run and _is_current(run)
            for run in self.runs
        )

    def add(self, run: Run) -> None:
        """Keeps a run, in the place of an earlier one of the same kind, and saves."""
        self.runs = [old for old in self.runs if _key(old) != _key(run)] + [run]
        self.runs.sort(key=_key)
        self.save()

    def save(self) -> None:
        """Writes the file, whole or not at all."""
        if self.path is None:
            return
        document = {"version": FORMAT_VERSION, "tables": self.tables, "runs": self.runs}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".partial")
        draft.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n")
        os.replace(draft, self.path)


def new_run(table: str, model: str, settings: Mapping[str, Any], seed: int) -> Run:
    """A run's identity, with the date and what it ran on."""
    return {
        "table": table,
        "model": model,
        "settings": dict(settings),
        "seed": seed,
        "measures": MEASURES,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions_of(model),
        "machine": f"{processor()}, 1 thread",
    }


def versions_of(model: str) -> dict[str, str]:
    """The versions that a run's figures depend on; of gcvae also a digest of its code."""
    versions = {"python": platform.python_version()}
    if model in PRESET_NAMES:
        versions |= {"gcvae": version("gcvae"), "source": _source_digest()}
        versions["torch"] = version("torch")
    elif (package := OTHERS[model].package) is not None:
        versions[package] = version(package)
    return versions


def _is_comparable(measured: Mapping[str, Any]) -> bool:
    """Whether figures mean what they mean today."""
    return bool(measured.get("measures") == MEASURES)


def _is_current(run: Run) -> bool:
    """Whether the model's code is still what the run measured."""
    now = versions_of(run["model"])
    same = [name for name in now if name not in ("python", "torch", "gcvae")]
    return all(run["versions"].get(name) == now[name] for name in same)


def _key(run: Mapping[str, Any]) -> tuple[str, str, str, int]:
    return run["table"], run["model"], json.dumps(run["settings"], sort_keys=True), run["seed"]


def _source_digest() -> str:
    """sha256 over the library's code, without that of the measures."""
    digest, root = hashlib.sha256(), Path(gcvae.__file__).parent
    for path in sorted(root.rglob("*.py")):
        if "evaluation" not in path.relative_to(root).parts:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def peak_bytes() -> int:
    """The most memory that this process has held.

    Of Linux's own status: its resource usage begins with what the parent held when it forked.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kilobytes) * 1024
