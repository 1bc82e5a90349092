"""Pictures of dependency maps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gcvae.glyphs import Lettering, width
from gcvae.pictures import drawing, new_figure, save_figure

if TYPE_CHECKING:
    from gcvae.dependence import DependencyMap

_MOST_COLUMNS_WITH_NUMBERS = 16
_MOST_COLUMNS_WITH_LEAVES_IN_ORDER = 200
_LARGEST_CELL, _SMALLEST_CELL, _LARGEST_MAP, _SMALLEST_MAP = 0.55, 0.075, 20.0, 3.5
"""Inches: of a cell, and of the map while its cells are larger than the smallest."""
_MOST_INCHES = 45.0
_POINTS_PER_INCH = 72
_LARGEST_FONT, _SMALLEST_FONT = 9.0, 3.0
_LETTER = 0.62
"""Width of a letter by the size of its font."""
_LONGEST_NAME = 24
_DOTS_PER_INCH, _DOTS_OF_LARGE_MAPS = 150, 120
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

    The diagonal is grey; a pair of which nothing can be said, since a column has one value only,
    is yellow.
    """
    with drawing(map_.columns, format) as lettering:
        order = clustered_order(map_.tau)
        tau = map_.tau[np.ix_(order, order)]
        sheet = _Sheet.of([map_.columns[i] for i in order], lettering)
        figure = new_figure(sheet.width, sheet.height, layout=None)
        axes = figure.add_axes(sheet.map_box)
        limit = _limit(map_.kind, tau)
        image = _show(axes, tau, limit)
        caption = CAPTIONS[map_.kind]
        axes.set_title(caption.title, loc="left", fontsize=12 * sheet.zoom)
        _name_axes(axes, sheet)
        if len(tau) <= _MOST_COLUMNS_WITH_NUMBERS:
            _write_numbers(axes, tau, limit)
        ticks = limit * np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
        legend = figure.colorbar(image, cax=figure.add_axes(sheet.legend_box), ticks=ticks)
        legend.set_label(caption.scale, fontsize=9 * sheet.zoom)
        legend.ax.tick_params(labelsize=9 * sheet.zoom)
        legend.outline.set_visible(False)
        if np.isnan(tau).any():
            _explain_undefined(figure, sheet)
        save_figure(figure, target, format, sheet.dots_per_inch)


@dataclass(frozen=True)
class _Sheet:
    """Where things stand, in inches. It is computed: letting matplotlib measure a thousand names
    takes half a minute.
    """

    names: tuple[str, ...]
    map_side: float
    font: float

    @classmethod
    def of(cls, columns: list[str], lettering: Lettering) -> _Sheet:
        """Large cells for few columns, names that can still be read for many."""
        n = max(len(columns), 1)
        roomy = float(np.clip(_LARGEST_CELL * n, _SMALLEST_MAP, _LARGEST_MAP))
        side = min(max(roomy, _SMALLEST_CELL * n), _MOST_INCHES)
        font = min(0.85 * side / n * _POINTS_PER_INCH, _LARGEST_FONT)
        names = tuple(lettering.drawn(name, _LONGEST_NAME) for name in columns)
        return cls(names, side, font)

    @property
    def are_named(self) -> bool:
        """False where the names would be too small to be read."""
        return self.font >= _SMALLEST_FONT

    @property
    def are_slanted(self) -> bool:
        """Slanted names of narrow cells would lie over each other: they stand upright."""
        return self.map_side / max(len(self.names), 1) > 0.3

    @property
    def zoom(self) -> float:
        """Of the other texts: a large picture is looked at from farther away."""
        return max(1.0, self.map_side / 12.0)

    @property
    def left(self) -> float:
        """Room for the names beside the map."""
        longest = max((width(name) for name in self.names), default=0) if self.are_named else 3
        return 0.25 + _LETTER * longest * self.font / _POINTS_PER_INCH

    @property
    def bottom(self) -> float:
        """Room for the names below the map, and for a line."""
        return self.left * (math.sqrt(0.5) if self.are_slanted else 1.0) + 0.35 * self.zoom

    @property
    def width(self) -> float:
        """Of the sheet."""
        return self.left + self.map_side + 1.4 * self.zoom

    @property
    def height(self) -> float:
        """Of the sheet."""
        return self.bottom + self.map_side + 0.5 * self.zoom

    @property
    def map_box(self) -> tuple[float, float, float, float]:
        """(left, bottom, width, height) as shares of the sheet."""
        return self._box(self.left, self.bottom, self.map_side, self.map_side)

    @property
    def legend_box(self) -> tuple[float, float, float, float]:
        """(left, bottom, width, height) as shares of the sheet."""
        left = self.left + self.map_side + 0.25 * self.zoom
        low = self.bottom + 0.1 * self.map_side
        return self._box(left, low, 0.18 * self.zoom, 0.8 * self.map_side)

    @property
    def dots_per_inch(self) -> int:
        """Of the PNG."""
        return _DOTS_PER_INCH if self.map_side <= _LARGEST_MAP else _DOTS_OF_LARGE_MAPS

    def _box(
        self, left: float, low: float, w: float, h: float
    ) -> tuple[float, float, float, float]:
        return left / self.width, low / self.height, w / self.width, h / self.height


def _limit(kind: str, tau: NDArray[np.float64]) -> float:
    """Where the colours end: at 1, but for differences at the largest of them."""
    others = np.abs(tau[~np.eye(len(tau), dtype=bool)])
    if kind != "difference" or not np.isfinite(others).any():
        return 1.0
    return float(np.ceil(max(np.nanmax(others), 0.05) * 20.0) / 20.0)


def _show(axes: Any, tau: NDArray[np.float64], limit: float) -> Any:
    """Colours the cells; the mappable is what the legend is of.

    The colours are looked up here: of a large map matplotlib would look up those of every pixel.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize, to_rgba

    mappable = ScalarMappable(Normalize(-limit, limit), "RdBu_r")
    colours = mappable.to_rgba(np.nan_to_num(tau), bytes=True)
    colours[np.isnan(tau)] = 255 * np.array(to_rgba(_UNDEFINED))
    colours[np.eye(len(tau), dtype=bool)] = 255 * np.array(to_rgba(_DIAGONAL))
    axes.imshow(colours, interpolation="nearest")
    return mappable


def _explain_undefined(figure: Any, sheet: _Sheet) -> None:
    from matplotlib.patches import Patch

    patch = Patch(facecolor=_UNDEFINED, label="not defined: a column with one value only")
    figure.legend(handles=[patch], loc="lower right", frameon=False, fontsize=9 * sheet.zoom)


def _name_axes(axes: Any, sheet: _Sheet) -> None:
    """Writes the names as plain texts: a thousand ticks take half a minute."""
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks([])
    axes.set_yticks([])
    if not sheet.are_named:
        text = f"{len(sheet.names)} columns, too many for their names"
        axes.set_xlabel(text, fontsize=9 * sheet.zoom)
        return
    plain = {"fontsize": sheet.font, "parse_math": False}  # a name may have a $
    slanted = {"rotation": 45, "ha": "right", "va": "top", "rotation_mode": "anchor"}
    upright = {"rotation": 90, "ha": "center", "va": "top"}
    gap = 0.06 * len(sheet.names) / sheet.map_side
    for i, name in enumerate(sheet.names):
        axes.text(-0.5 - gap, i, name, ha="right", va="center", **plain)
        turned = slanted if sheet.are_slanted else upright
        axes.text(i, len(sheet.names) - 0.5 + gap, name, **turned, **plain)


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
