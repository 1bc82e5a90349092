"""Shows progress bars on standard error, if it is a terminal.

The package rich is imported with the first bar, so that help texts are shown faster.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Bar:
    """Progress bar in the terminal."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def move(self, fraction: float, note: str = "") -> None:
        """Moves the bar to a fraction of the work (0 to 1) and shows a note next to it."""
        self._progress.update(self._task, completed=fraction, note=note)


@contextmanager
def progress_bar(title: str) -> Iterator[Bar]:
    """Context manager that yields a progress bar on standard error, invisible outside terminals."""
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
    """Returns the string to show next to the progress bar of a training.

    It contains the phase, the epoch, and the bounds on the log-likelihood in nats per row (higher
    is better), as far as they are known.

    Args:
        progress: Progress of the training, from the library or the REST API.

    >>> training_note({"phase": "training", "epoch": 3, "bound_train": -2.5})
    'training · epoch 3 · log-likelihood -2.50'
    """
    parts = [progress.get("phase")]
    parts += [f"epoch {progress['epoch']}" if progress.get("epoch") else None]
    for name, word in (("bound_train", "log-likelihood"), ("bound_held_out", "held out")):
        bound = progress.get(name)
        parts += [f"{word} {bound:.2f}" if bound is not None else None]
    return " · ".join(part for part in parts if part)
