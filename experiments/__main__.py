"""`python -m experiments [NAME …]`: runs experiments, stores their results, writes the page."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from experiments import (
    copula_pictures,
    frey_faces,
    half_circle,
    half_circle_wedges,
    kendall,
    manifold_pictures,
    mnist,
    uci,
)
from experiments.budgets import BUDGETS
from experiments.page import render_page
from experiments.results import Line, keep, lines_to_continue

NAMES = (
    "half-circle",
    "half-circle-wedges",
    "frey-faces",
    "mnist",
    "auto",
    "spect",
    "kendall",
    "auto-manifold",
    "spect-manifold",
    "copula",
)
ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Runs the experiments named on the command line (all by default), then writes the page from
    all stored results."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--budget", choices=BUDGETS, default="short")
    parser.add_argument("--results", type=Path, default=ROOT / "experiments" / "results")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "paper.md")
    parser.add_argument(
        "--continue", action="store_true", dest="goes_on",
        help="fits of auto and spect that are kept are not made again",
    )  # fmt: skip
    parser.add_argument("--page-only", action="store_true", help="from the results that are there")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(NAMES):
        parser.error(f"there is no experiment {', '.join(sorted(unknown))}: {', '.join(NAMES)}")
    data = Path(os.environ.get("GCVAE_DATA_DIR", ROOT.parent / "shared" / "data"))
    if not data.is_dir():
        parser.error(f"there are no tables in {data}; set GCVAE_DATA_DIR to their folder")
    budget, pictures = BUDGETS[chosen.budget], chosen.page.parent / "images" / "paper"
    runs = {
        "half-circle": lambda: half_circle.run(budget, pictures),
        "half-circle-wedges": lambda: half_circle_wedges.run(budget, pictures),
        "frey-faces": lambda: frey_faces.run(budget, data, pictures),
        "mnist": lambda: mnist.run(budget, data, pictures),
        "auto": lambda: uci.run(uci.AUTO, budget, data, before["auto"]),
        "spect": lambda: uci.run(uci.SPECT, budget, data, before["spect"]),
        "kendall": lambda: kendall.run(budget, data, pictures),
        "auto-manifold": lambda: manifold_pictures.run_auto(budget, data, pictures),
        "spect-manifold": lambda: manifold_pictures.run_spect(budget, data, pictures),
        "copula": lambda: copula_pictures.run(pictures),
    }
    paths = {name: chosen.results / f"{name}.json" for name in NAMES}
    before: dict[str, list[Line]] = {name: [] for name in NAMES}
    if chosen.goes_on:
        before |= {name: lines_to_continue(paths[name], budget) for name in ("auto", "spect")}
    for name in () if chosen.page_only else chosen.names or NAMES:
        keep(runs[name](), budget, paths[name], before[name])
    chosen.page.parent.mkdir(parents=True, exist_ok=True)
    chosen.page.write_text(render_page(chosen.results, pictures, chosen.page.parent))


if __name__ == "__main__":
    main()
