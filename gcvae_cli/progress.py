"""Progress on the terminal: to the standard error, and none where nobody looks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class Reported(Protocol):
    """What a training says of itself, in the library as over REST."""

    @property
    def phase(self) -> str:
        """What is being done."""

    @property
    def fraction(self) -> float:
        """From 0 to 1."""

    @property
    def epoch(self) -> int:
        """The epoch under way."""

    @property
    def bound_train(self) -> float | None:
        """Nats per row."""

    @property
    def bound_held_out(self) -> float | None:
        """Nats per row."""


class Bar:
    """One bar: `advance` moves it to a fraction, with a few words beside it."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def move(self, fraction: float, note: str = "") -> None:
        """Move the bar to a fraction of the whole."""
        self._progress.update(self._task, completed=fraction, note=note)


@contextmanager
def progress_bar(title: str) -> Iterator[Bar]:
    """A bar on the standard error, invisible where that is no terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=32, complete_style="cyan", finished_style="green"),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(compact=True),
        TextColumn("[dim]{task.fields[note]}"),
    )
    with Progress(*columns, console=console, disable=not sys.stderr.isatty()) as progress:
        yield Bar(progress, progress.add_task(title, total=1.0, note=""))


def training_note(reported: Reported) -> str:
    """The words beside a training's bar.

    Bounds are nats per row, higher is better.
    """
    parts = [reported.phase]
    if reported.epoch:
        parts.append(f"epoch {reported.epoch}")
    if reported.bound_train is not None:
        parts.append(f"bound {reported.bound_train:.3f}")
    if reported.bound_held_out is not None:
        parts.append(f"held out {reported.bound_held_out:.3f}")
    return " · ".join(parts)
