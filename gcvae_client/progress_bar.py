"""Shows the progress of a job as a line in a terminal or as HTML in a notebook."""

from __future__ import annotations

import html
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from gcvae_client.errors import Document

Show = Callable[[Document], None]
_WIDTH = 24


@contextmanager
def bar(shown: bool, *, always: bool = False) -> Iterator[Show]:
    """Context manager that yields a function that shows the progress of a job, given as JSON.

    Args:
        shown: Whether the function shows the progress; if False, it does nothing.
        always: Whether to show the progress even outside of terminals and notebooks.
    """
    display = _notebook_display() if shown else None
    if display is not None:
        yield _in_notebook(display)
    elif shown and (always or sys.stderr.isatty()):
        try:
            yield _in_terminal
        finally:
            print(file=sys.stderr)
    else:
        yield lambda job: None


def line_of(job: Document) -> str:
    """Returns the progress of a job (JSON) as a string of one line.

    >>> progress = {"phase": "training", "fraction": 0.5, "seconds_left": 75.2}
    >>> line_of({"kind": "train", "status": "running", "progress": progress})
    'train ████████████············  50 % · training · 1 min 15 s left'
    """
    progress = job["progress"] or {}
    fraction = 1.0 if job["status"] == "succeeded" else progress.get("fraction") or 0.0
    n_full = int(fraction * _WIDTH)
    drawn = "█" * n_full + "·" * (_WIDTH - n_full)
    return f"{job['kind']} {drawn} {fraction:4.0%} · {_note(job, progress)}".replace("%", " %")


def _note(job: Document, progress: Document) -> str:
    if job["status"] != "running":
        return str(job["status"])
    parts = [str(progress.get("phase") or "running")]
    if (bound := progress.get("bound_held_out")) is not None:
        parts.append(f"held-out log-likelihood {bound:.2f}")
    seconds = progress.get("seconds_left")
    if seconds is not None:
        minutes, rest = divmod(round(seconds), 60)
        parts.append(f"{minutes} min {rest} s left" if minutes else f"{rest} s left")
    return " · ".join(parts)


def _in_terminal(job: Document) -> None:
    width = shutil.get_terminal_size().columns - 1
    print(f"\r\x1b[K{line_of(job)[:width]}", end="", file=sys.stderr, flush=True)


def _in_notebook(display: Any) -> Show:
    handle = display(_Line(""), display_id=True)
    return lambda job: handle.update(_Line(line_of(job)))


class _Line(str):
    """Text that notebooks show in a fixed-width font."""

    __repr__ = str.__str__

    def _repr_html_(self) -> str:
        return f"<pre style='margin:0'>{html.escape(self)}</pre>"


def _notebook_display() -> Any:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if not hasattr(shell, "kernel"):
        return None
    return import_module("IPython.display").display
