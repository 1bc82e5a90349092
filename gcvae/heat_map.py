"""Pictures of dependency maps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gcvae.glyphs import drawable
from gcvae.pictures import DRAWING, new_figure, save_figure

if TYPE_CHECKING:
    from gcvae.dependence import DependencyMap

_MOST_COLUMNS_WITH_NUMBERS = 16
_MOST_COLUMNS_WITH_LEAVES_IN_ORDER = 200
_INCHES_PER_COLUMN, _FEWEST_INCHES, _MOST_INCHES = 0.08, 6.0, 48.0
_POINTS_PER_INCH = 72
_LARGEST_FONT, _SMALLEST_FONT = 9.0, 3.0
_LONGEST_NAME = 24
_DOTS_PER_INCH = 150
_DIAGONAL = "#dfe4e8"
_UNDEFINED = "#f2c14e"


@dataclass(frozen=True)
class _Caption:
    title: str
    scale: str


_DEPENDENCE = "discordant        none        concordant"
_SHARE = "share of the correlation of normal scores"
CAPTIONS = {
    "local": _Caption("Kendall's tau of the decoder copula at one place", _DEPENDENCE),
    "expected": _Caption("Kendall's tau of the decoder copula, expected over z", _DEPENDENCE),
    "within": _Caption("Correlation within z: what is left once z is known", _SHARE),
    "between": _Caption("Correlation between z: what runs through the latent vector", _SHARE),
    "total": _Caption("Kendall's tau-b of the model's rows", _DEPENDENCE),
    "data": _Caption("Kendall's tau-b of the training table", _DEPENDENCE),
    "difference": _Caption(
        "Kendall's tau-b, the model's rows less the table's", "too discordant    too concordant"
    ),
}


def draw_heat_map(map_: DependencyMap, target: str | Path | BinaryIO, format: str) -> None:
    """Draws a map with its columns in clustered order and a legend.

    The diagonal, which says nothing, is grey; a pair of which nothing can be said, since a column
    has one value only, is yellow.
    """
    with DRAWING:
        order = clustered_order(map_.tau)
        names = [map_.columns[i] for i in order]
        tau = map_.tau[np.ix_(order, order)]
        side = _side(len(names))
        figure = new_figure(side + 0.6, side)
        axes = figure.add_subplot()
        limit = _limit(map_.kind, tau)
        image = _show(axes, tau, limit)
        caption = CAPTIONS[map_.kind]
        axes.set_title(caption.title, loc="left", fontsize=12)
        _name_axes(axes, names, side)
        if len(names) <= _MOST_COLUMNS_WITH_NUMBERS:
            _write_numbers(axes, tau, limit)
        ticks = limit * np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
        legend = figure.colorbar(image, ax=axes, shrink=0.75, ticks=ticks)
        legend.set_label(caption.scale, fontsize=9)
        legend.outline.set_visible(False)  # type: ignore[operator]
        if np.isnan(tau).any():
            _explain_undefined(figure)
        save_figure(figure, target, format, _DOTS_PER_INCH)


def _side(n_columns: int) -> float:
    """Inches of the picture's sides: large cells for few columns, readable names for many."""
    wide = float(np.clip(0.55 * n_columns + 2.5, _FEWEST_INCHES, 24.0))
    return min(max(wide, _INCHES_PER_COLUMN * n_columns + 4.0), _MOST_INCHES)


def _limit(kind: str, tau: NDArray[np.float64]) -> float:
    """Where the colours end: at 1, but for differences at the largest of them."""
    others = np.abs(tau[~np.eye(len(tau), dtype=bool)])
    if kind != "difference" or not np.isfinite(others).any():
        return 1.0
    return float(np.ceil(max(np.nanmax(others), 0.05) * 20.0) / 20.0)


def _show(axes: Any, tau: NDArray[np.float64], limit: float) -> Any:
    from matplotlib.colors import ListedColormap

    others = np.ma.masked_array(tau, np.eye(len(tau), dtype=bool) | np.isnan(tau))
    axes.set_facecolor(_DIAGONAL)
    image = axes.imshow(others, vmin=-limit, vmax=limit, cmap="RdBu_r", interpolation="nearest")
    undefined = np.ma.masked_array(np.zeros(tau.shape), ~np.isnan(tau))
    axes.imshow(undefined, cmap=ListedColormap([_UNDEFINED]), interpolation="nearest")
    return image


def _explain_undefined(figure: Any) -> None:
    from matplotlib.patches import Patch

    patch = Patch(facecolor=_UNDEFINED, label="not defined: a column with one value only")
    figure.legend(handles=[patch], loc="outside lower right", frameon=False, fontsize=9)


def _name_axes(axes: Any, names: list[str], side: float) -> None:
    for spine in axes.spines.values():
        spine.set_visible(False)
    room = 0.7 * (side - 2.5) / len(names) * _POINTS_PER_INCH if names else _LARGEST_FONT
    if room < _SMALLEST_FONT:
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_xlabel(f"{len(names)} columns, too many for their names", fontsize=9)
        return
    axes.tick_params(length=0, labelsize=min(room, _LARGEST_FONT), pad=1)
    short = [
        drawable(name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…")
        for name in names
    ]
    # A name may have a $. Many names stand upright: slanted ones would lie over each other.
    slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    upright = {"rotation": 90}
    turned = slanted if room > 1.5 * _LARGEST_FONT else upright
    axes.set_xticks(range(len(names)), short, parse_math=False, **turned)
    axes.set_yticks(range(len(names)), short, parse_math=False)


def _write_numbers(axes: Any, tau: NDArray[np.float64], limit: float) -> None:
    for i, row in enumerate(tau):
        for j, value in enumerate(row):
            if i != j:
                text, colour = _number(value, limit)
                axes.text(j, i, text, ha="center", va="center", fontsize=8, color=colour)


def _number(value: float, limit: float = 1.0) -> tuple[str, str]:
    """A cell's text and its colour; what rounds to zero stays in the background.

    >>> _number(0.25), _number(-0.001), _number(float("nan"))
    (('+0.25', '#333333'), ('0', '#9aa5b1'), ('×', '#333333'))
    """
    if np.isnan(value):
        return "×", "#333333"
    if abs(value) < 0.005:
        return "0", "#9aa5b1"
    text = f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")
    return text, "white" if abs(value) > 0.6 * limit else "#333333"


def clustered_order(tau: NDArray[np.float64]) -> list[int]:
    """Column indices such that strongly dependent columns stand side by side.

    Average linkage on 1 - |tau|, leaves ordered to keep neighbours close; NaN counts as no
    dependence. Shape: (D, D) -> (D,).
    """
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    if len(tau) < 3:
        return list(range(len(tau)))
    strength = np.clip(np.abs(np.nan_to_num(tau)), 0.0, 1.0)
    distance = squareform(1.0 - strength, checks=False)
    tree = linkage(distance, method="average")
    if len(tau) <= _MOST_COLUMNS_WITH_LEAVES_IN_ORDER:
        tree = optimal_leaf_ordering(tree, distance)
    return [int(i) for i in leaves_list(tree)]
