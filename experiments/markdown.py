"""Figures and tables as Markdown has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np


def spread(figures: Iterable[float], digits: int = 2, *, sign: bool = False) -> str:
    """Mean ± deviation; one figure alone where there is no other."""
    values = np.array(list(figures), dtype=float)
    form = f"{'+' if sign else ''}.{digits}f"
    if not len(values):
        return "–"
    mean = format(values.mean(), form).replace("-", "−")
    return mean if len(values) == 1 else f"{mean} ± {values.std(ddof=1):.{digits}f}"


def signed(figure: float, digits: int) -> str:
    """The figure with its sign."""
    return f"{figure:+.{digits}f}".replace("-", "−")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown; the first column is text."""
    lines = [head, ("---", *["---:"] * (len(head) - 1)), *rows]
    return "\n".join(f"|{'|'.join(line)}|" for line in lines)
