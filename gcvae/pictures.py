"""Files of pictures: no window system, no state that is shared between drawings."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWING = threading.Lock()
"""Held while a picture is drawn: matplotlib's fonts and parameters are shared between threads."""


def format_of_picture(target: str | Path | BinaryIO) -> str:
    """`svg` of a path that ends so, else `png`."""
    is_svg = isinstance(target, str | Path) and str(target).lower().endswith(".svg")
    return "svg" if is_svg else "png"


def new_figure(width: float, height: float, layout: Literal["constrained"] | None) -> Figure:
    """An empty figure on an Agg canvas, sizes in inches; pyplot is not asked."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, target: str | Path | BinaryIO, format: str, dpi: int) -> None:
    """Writes the figure as `png` or `svg`; equal figures give equal files."""
    from matplotlib import rc_context

    no_date: dict[str, Any] = {"Date": None} if format == "svg" else {}
    with rc_context({"svg.hashsalt": "gcvae"}):
        figure.savefig(target, format=format, dpi=dpi, metadata=no_date)
