"""Progress bars on standard error, in terminals only.

The module imports rich with the first bar, so that help texts load faster.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Bar:
    """A progress bar."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def move(self, fraction: float, note: str = "") -> None:
        """Moves the bar to a fraction, with a note next to it."""
        self._progress.update(self._task, completed=fraction, note=note)


@contextmanager
def progress_bar(title: str) -> Iterator[Bar]:
    """Yields a bar on standard error, which is invisible outside of terminals."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

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


def training_note(progress: Mapping[str, Any]) -> str:
    """Returns the note next to a training's bar, from its progress in the library or over REST.

    Bounds are in nats per row; higher is better. Unknown values are omitted.

    >>> training_note({"phase": "training", "epoch": 3, "bound_train": -2.5})
    'training · epoch 3 · log-likelihood -2.50'
    """
    parts = [progress.get("phase")]
    parts += [f"epoch {progress['epoch']}" if progress.get("epoch") else None]
    for name, word in (("bound_train", "log-likelihood"), ("bound_held_out", "held out")):
        bound = progress.get(name)
        parts += [f"{word} {bound:.2f}" if bound is not None else None]
    return " · ".join(part for part in parts if part)
