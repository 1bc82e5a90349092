"""Progress bar of a fit, in terminals and notebooks."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, Any, TextIO

from gcvae.training.progress.training_progress import Progress

if TYPE_CHECKING:
    from tqdm import tqdm

Callback = Callable[[Progress], None]
_LINE = "{desc} {percentage:3.0f} %|{bar:24}| {elapsed}{postfix}"


@contextmanager
def reported(progress: Callback | bool | None) -> Iterator[Callback | None]:
    """Context manager that yields the callback for the progress of a fit, or None for no reports.

    Args:
        progress: A callback; True shows a progress bar, False shows none, None shows one if
            standard error is a terminal or the code runs in a notebook.
    """
    display = _notebook_display()
    if progress is None:
        progress = display is not None or sys.stderr.isatty()
    if not isinstance(progress, bool):
        yield progress
    elif not progress:
        yield None
    elif display is not None:
        with _bar(StringIO(), ascii=False) as unseen:  # notebooks show Unicode
            yield _in_notebook(display, unseen)
    else:
        with _bar(sys.stderr) as shown:
            yield lambda report: _move(shown, report)


def _bar(target: TextIO, ascii: bool | None = None) -> tqdm[Any]:
    # `tqdm.auto` warns in notebooks without ipywidgets, and its widgets are not saved with them.
    from tqdm import tqdm

    return tqdm(total=1.0, bar_format=_LINE, file=target, ascii=ascii)


def _in_notebook(display: Any, bar: tqdm[Any]) -> Callback:
    """Returns a callback that shows the bar as one line of the notebook's output and updates it."""
    handle = display(_Line(bar), display_id=True)

    def show(report: Progress) -> None:
        _move(bar, report)
        handle.update(_Line(bar))

    return show


class _Line(str):
    """A text that notebooks show in a fixed-width font."""

    __repr__ = str.__str__

    def _repr_html_(self) -> str:
        return f"<pre style='margin:0'>{html.escape(self)}</pre>"


def _move(bar: tqdm[Any], report: Progress) -> None:
    bar.set_description_str(report.phase, refresh=False)
    bar.set_postfix_str(_note(report), refresh=False)
    bar.n = report.fraction
    bar.refresh()


def _note(report: Progress) -> str:
    """Returns the text beside the bar: the held-out bound and the remaining time.

    >>> _note(Progress("training", 0.5, 3, 9, bound_held_out=-2.5, seconds_left=75.2))
    'held out -2.50 nats per row, 1:15 left'
    """
    bound, seconds = report.bound_held_out, report.seconds_left
    parts = [] if bound is None else [f"held out {bound:.2f} nats per row"]
    if seconds:
        parts.append(f"{int(seconds) // 60}:{int(seconds) % 60:02d} left")
    return ", ".join(parts)


def _notebook_display() -> Any:
    """Returns the display function of the running notebook; None outside of notebooks."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return import_module("IPython.display").display if hasattr(shell, "kernel") else None
