"""One figure, measured several times, and how it is told."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Options:
    """What is measured, and how often.

    Attributes:
        data: Folder of the tables.
        scratch: Folder for models and files.
        repeats: Runs of each figure, of which the page shows the median and the ends.
        rows: Drawn in each run.
        scale: Numbers of rows between which the time of a row is compared.
        settings: Of the fits, in the place of the presets' own.
        peer_python: A Python that has the peer, if there is one.
    """

    data: Path
    scratch: Path
    repeats: int
    rows: int
    scale: tuple[int, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    peer_python: Path | None = None


@dataclass(frozen=True)
class Measure:
    """A figure.

    Attributes:
        subject: What it is of: `fit default`, `sample fast`, ...
        what: In the subject.
        unit: Of the values.
        values: One for each run.
    """

    subject: str
    what: str
    unit: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """Of the values."""
        return statistics.median(self.values)


def cpu_seconds_of(step: Callable[[], object]) -> float:
    """CPU seconds of this process and of the children that ended in a step."""
    before = _cpu_seconds()
    step()
    return _cpu_seconds() - before


def _cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
