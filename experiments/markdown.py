"""Formats figures and tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np


def spread(figures: Iterable[float], digits: int = 2, *, sign: bool = False) -> str:
    """Returns the text of mean ± standard deviation; of a single figure only the figure, of none a
    dash."""
    values = np.array(list(figures), dtype=float)
    form = f"{'+' if sign else ''}.{digits}f"
    if not len(values):
        return "–"
    mean = format(values.mean(), form).replace("-", "−")
    return mean if len(values) == 1 else f"{mean} ± {values.std(ddof=1):.{digits}f}"


def signed(figure: float, digits: int) -> str:
    """Returns a figure as text with its sign."""
    return f"{figure:+.{digits}f}".replace("-", "−")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a Markdown table; columns after the first are aligned to the right."""
    lines = [head, ("---", *["---:"] * (len(head) - 1)), *rows]
    return "\n".join(f"|{'|'.join(line)}|" for line in lines)
