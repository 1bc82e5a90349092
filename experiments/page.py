"""docs/paper.md, written from the results: claim, run, figures beside the paper's, verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments import page_circle, page_copula, page_images, page_uci
from experiments.results import read

_INTRODUCTION = """\
# The paper's experiments, made again

After this page you know which claims of Suh & Choi 2016 hold for this implementation, by how much,
and which of its figures can not be what they say. Written by `python -m experiments` from
`experiments/results/`; do not edit. Every model is the library's own: presets `paper-vae`,
`paper-vae-roc` and `paper-gcvae`, trained by the library's loop. `make experiments` makes it anew
with the budget `short`, which each section states; with `--budget paper` it goes the paper's whole
way, which on images takes hours.

The paper measures by kernels on 10,000 drawn rows. That favours models without noise and depends on
which rows are drawn; unless a section says otherwise they are x ~ p(x|z), z ~ p(z), within the
limits of the training rows, as the product draws them. Beside it stands the honest figure: nats
per held-out row by importance weighting, a lower bound on log p.
"""
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
"""What an experiment is called, and what writes its section."""


def render_page(results: Path, pictures: Path, page_folder: Path) -> str:
    """The page: a section for each experiment that has results, and the names of the others."""
    at = pictures.relative_to(page_folder)
    parts, missing = [_INTRODUCTION], []
    for name, (called, section) in SECTIONS.items():
        found = read(results / f"{name}.json")
        if found is None:
            missing.append(called)
        else:
            parts.append(section(found["lines"], found["budget"], at))
    if missing:
        parts.append(f"{_MISSING}\n{', '.join(missing)}.\n")
    return "\n".join(parts)
