"""Pictures of dependency maps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gcvae.glyphs import drawable

if TYPE_CHECKING:
    from gcvae.dependence import DependencyMap

_MOST_COLUMNS_WITH_NUMBERS = 16
_MOST_COLUMNS_WITH_NAMES = 80
_LONGEST_NAME = 24
_DIAGONAL = "#dfe4e8"
TITLES = {
    "expected": "Kendall's tau of the decoder copula, expected over z",
    "total": "Kendall's tau-b of the model's rows",
    "data": "Kendall's tau-b of the training table",
}


def draw_heat_map(map_: DependencyMap, target: str | Path | BinaryIO, format: str) -> None:
    """Draws a map with its columns in clustered order and a legend.

    Agg and SVG canvases are used directly: no window system, no global state of pyplot.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    order = clustered_order(map_.tau)
    names = [map_.columns[i] for i in order]
    side = float(np.clip(0.55 * len(names) + 2.5, 6.0, 24.0))
    figure = Figure(figsize=(side + 0.6, side), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    tau = map_.tau[np.ix_(order, order)]
    others = np.ma.masked_array(tau, np.eye(len(tau), dtype=bool))  # the diagonal says nothing
    axes.set_facecolor(_DIAGONAL)
    image = axes.imshow(others, vmin=-1.0, vmax=1.0, cmap="RdBu_r", interpolation="nearest")
    axes.set_title(TITLES.get(map_.kind, f"Kendall's tau: {map_.kind}"), loc="left", fontsize=12)
    _name_axes(axes, names)
    if len(names) <= _MOST_COLUMNS_WITH_NUMBERS:
        _write_numbers(axes, tau)
    legend = figure.colorbar(image, ax=axes, shrink=0.75, ticks=[-1, -0.5, 0, 0.5, 1])
    legend.set_label("discordant        none        concordant", fontsize=9)
    legend.outline.set_visible(False)
    with rc_context({"svg.hashsalt": "gcvae"}):
        figure.savefig(target, format=format, dpi=150, metadata=_no_date(format))


def _no_date(format: str) -> dict[str, Any]:
    """Equal maps give equal pictures: no date in the file."""
    return {"Date": None} if format == "svg" else {}


def _name_axes(axes: Any, names: list[str]) -> None:
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0, labelsize=9 if len(names) <= 30 else 6)
    if len(names) > _MOST_COLUMNS_WITH_NAMES:
        axes.set_xticks([])
        axes.set_yticks([])
        return
    short = [
        drawable(name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…")
        for name in names
    ]
    slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(names)), short, parse_math=False, **slanted)  # a name may have a $
    axes.set_yticks(range(len(names)), short, parse_math=False)


def _write_numbers(axes: Any, tau: NDArray[np.float64]) -> None:
    for i, row in enumerate(tau):
        for j, value in enumerate(row):
            if i != j:
                text, colour = _number(value)
                axes.text(j, i, text, ha="center", va="center", fontsize=8, color=colour)


def _number(value: float) -> tuple[str, str]:
    """A cell's text and its colour; what rounds to zero stays in the background.

    >>> _number(0.25), _number(-0.001)
    (('+0.25', '#333333'), ('0', '#9aa5b1'))
    """
    if abs(value) < 0.005:
        return "0", "#9aa5b1"
    text = f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")
    return text, "white" if abs(value) > 0.6 else "#333333"


def clustered_order(tau: NDArray[np.float64]) -> list[int]:
    """Column indices such that strongly dependent columns stand side by side.

    Average linkage on 1 - |tau|, leaves ordered to keep neighbours close. Shape: (D, D) -> (D,).
    """
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    if len(tau) < 3:
        return list(range(len(tau)))
    distance = squareform(1.0 - np.abs(tau), checks=False)
    tree = linkage(distance, method="average")
    if len(tau) <= 200:
        tree = optimal_leaf_ordering(tree, distance)
    return [int(i) for i in leaves_list(tree)]
