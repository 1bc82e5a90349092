"""Writes docs/paper.md: where each part of the paper is implemented, departures, and results
(claim, run, verdict)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments import page_circle, page_copula, page_images, page_uci
from experiments.results import read

_HEAD = Path(__file__).with_name("page_head.md")
"""File with the beginning of the page, which is written by hand."""
_MISSING = """\
## Not made yet
"""
Section = Callable[[list[dict[str, Any]], dict[str, Any], Path], str]
SECTIONS: dict[str, tuple[str, Section]] = {
    "half-circle": ("half circle", page_circle.half_circle),
    "half-circle-wedges": ("half circle with wedges", page_circle.wedges),
    "frey-faces": ("Frey faces", page_images.frey),
    "mnist": ("MNIST", page_images.digits),
    "auto": ("UCI Auto", page_uci.auto),
    "spect": ("UCI SPECT", page_uci.spect),
    "kendall": ("Kendall's tau", page_uci.kendall),
    "auto-manifold": ("manifold of Auto", page_uci.auto_manifold),
    "spect-manifold": ("manifold of SPECT", page_uci.spect_manifold),
    "copula": ("copula pictures", page_copula.copula),
}
"""For each experiment, its name on the page, and the function that writes its section."""


def render_page(results: Path, pictures: Path, page_folder: Path) -> str:
    """Returns the page in Markdown: a section for each experiment with stored results, and the
    names of the others.

    Args:
        results: Folder with the results.
        pictures: Folder with the pictures.
        page_folder: Folder of the page, from which links to pictures start.
    """
    at = pictures.relative_to(page_folder)
    parts, missing = [_HEAD.read_text(encoding="utf-8")], []
    for name, (called, section) in SECTIONS.items():
        found = read(results / f"{name}.json")
        if found is None:
            missing.append(called)
        else:
            parts.append(section(found["lines"], found["budget"], at))
    if missing:
        parts.append(f"{_MISSING}\n{', '.join(missing)}.\n")
    return "\n".join(parts)
