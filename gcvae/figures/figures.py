"""Files of pictures: no window system, no state that is shared between drawings."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from gcvae.errors import InputError, MissingPackageError, Problem
from gcvae.figures.fonts import Lettering

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DRAWING = threading.Lock()
"""Held while a picture is drawn: matplotlib's fonts and parameters are shared between threads."""


def require_matplotlib() -> None:
    """Nothing, where pictures can be drawn.

    Raises:
        MissingPackageError: matplotlib is not installed; it comes with the extra `plots`.
    """
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingPackageError("pictures", "matplotlib", "plots") from error


@contextmanager
def drawing(texts: Iterable[str], format: str) -> Iterator[Lettering]:
    """A picture is drawn and saved in this block, alone; the lettering is for these texts of it.

    Raises:
        MissingPackageError: matplotlib is not installed.
    """
    require_matplotlib()
    from matplotlib import rc_context, rcParams

    with _DRAWING, warnings.catch_warnings():
        lettering = Lettering.of(texts, is_svg=format == "svg")
        families = [*rcParams["font.family"], *lettering.families]
        with rc_context({"font.family": families, "svg.hashsalt": "gcvae"}):
            if lettering.has_foreign and format == "svg":
                # Text stays text, and has room for a viewer's font, which may be wider.
                rcParams["svg.fonttype"] = "none"
                rcParams["savefig.pad_inches"] = 0.7
                warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
            yield lettering


def format_of_picture(target: str | Path | BinaryIO) -> str:
    """What a path ends in; `png` of an open file, and of a path without an ending.

    Raises:
        InputError: The ending is that of another format.
    """
    ending = Path(target).suffix.lower() if isinstance(target, str | Path) else ""
    if ending not in ("", ".png", ".svg"):
        raise InputError(Problem(f"no picture is drawn as {ending}", expected=".png or .svg"))
    return "svg" if ending == ".svg" else "png"


def new_figure(width: float, height: float, layout: Literal["constrained"] | None) -> Figure:
    """An empty figure on an Agg canvas, sizes in inches; pyplot is not asked."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def save_figure(
    figure: Figure,
    target: str | Path | BinaryIO,
    format: str,
    dpi: int,
    title: str = "",
    box: Literal["tight"] | None = None,
) -> None:
    """Writes a figure, in the block of `drawing`; equal figures give equal files.

    Args:
        title: What the picture shows, for screen readers; the file's metadata have it.
        box: `tight` has the sheet end where the figure's contents do.
    """
    metadata: dict[str, Any] = {"Title": title} if title else {}
    if format == "svg":
        metadata["Date"] = None
    figure.savefig(target, format=format, dpi=dpi, metadata=metadata, bbox_inches=box)
