"""Draws pictures with matplotlib and writes them to files, without a window system."""

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
"""Lock of the thread that draws, because threads share matplotlib's fonts and parameters."""


def require_matplotlib() -> None:
    """Checks that matplotlib is installed.

    Raises:
        MissingPackageError: matplotlib is not installed; the extra `plots` installs it.
    """
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingPackageError("pictures", "matplotlib", "plots") from error


@contextmanager
def drawing(texts: Iterable[str], format: str) -> Iterator[Lettering]:
    """Context manager in which one thread at a time draws and saves a picture, because threads
    share matplotlib's fonts. Yields the fonts for the picture.

    Args:
        texts: All strings of the picture.
        format: `png` or `svg`.

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
                # Text stays text in SVG; the viewer's font may be wider.
                rcParams["svg.fonttype"] = "none"
                rcParams["savefig.pad_inches"] = 0.7
                warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
            yield lettering


def format_of_picture(target: str | Path | BinaryIO) -> str:
    """Returns the format of a picture, `png` or `svg`, by the extension of its path; `png` for open
    files and for paths without an extension.

    Raises:
        InputError: The extension is neither `.png` nor `.svg`.
    """
    ending = Path(target).suffix.lower() if isinstance(target, str | Path) else ""
    if ending not in ("", ".png", ".svg"):
        raise InputError(Problem(f"no picture is drawn as {ending}", expected=".png or .svg"))
    return "svg" if ending == ".svg" else "png"


def new_figure(width: float, height: float, layout: Literal["constrained"] | None) -> Figure:
    """Returns an empty matplotlib figure that needs no pyplot and no window; sizes in inches."""
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
    """Saves a figure to a file; call it in a `drawing` block. Equal figures give equal files.

    The title is a description for screen readers in the file's metadata. With the box `tight`, the
    picture is cropped to the figure's contents.
    """
    metadata: dict[str, Any] = {"Title": title} if title else {}
    if format == "svg":
        metadata["Date"] = None
    figure.savefig(target, format=format, dpi=dpi, metadata=metadata, bbox_inches=box)
