"""The bar of a fit: a line in a terminal, a widget in a notebook, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gcvae.training.training_progress import Progress

if TYPE_CHECKING:
    from tqdm import tqdm

Callback = Callable[[Progress], None]
_LINE = "{desc} {percentage:3.0f} %|{bar:24}| {elapsed}{postfix}"


@contextmanager
def reported(progress: Callback | bool | None) -> Iterator[Callback | None]:
    """What takes a fit's reports, until the block ends.

    Args:
        progress: A callback of one's own; True shows a bar, False none, and None one where the
            standard error is a terminal or a notebook's.
    """
    if progress is None:
        progress = sys.stderr.isatty() or _in_notebook()
    if not isinstance(progress, bool):
        yield progress
    elif not progress:
        yield None
    else:
        from tqdm.auto import tqdm as bar

        shown: tqdm[Any]
        with bar(total=1.0, bar_format=_LINE) as shown:
            yield lambda report: _move(shown, report)


def _move(bar: tqdm[Any], report: Progress) -> None:
    bar.set_description_str(report.phase, refresh=False)
    bar.set_postfix_str(_note(report), refresh=False)
    bar.n = report.fraction
    bar.refresh()


def _note(report: Progress) -> str:
    """The held-out bound, and the time that is left.

    >>> _note(Progress("training", 0.5, 3, 9, bound_held_out=-2.5, seconds_left=75.2))
    'held out -2.50 nats a row, 1:15 left'
    """
    bound, seconds = report.bound_held_out, report.seconds_left
    parts = [] if bound is None else [f"held out {bound:.2f} nats a row"]
    if seconds:
        parts.append(f"{int(seconds) // 60}:{int(seconds) % 60:02d} left")
    return ", ".join(parts)


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")
