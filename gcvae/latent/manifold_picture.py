"""Draws manifolds: one panel for each column, whose axes are the two latent dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from gcvae.figures.figures import drawing, new_figure, save_figure
from gcvae.figures.fonts import Lettering
from gcvae.latent.grids import Grid, LevelGrid, NumberGrid

_PANELS_ACROSS = 4
_MOST_PANELS = 40
_MOST_NAMED_LEVELS = 8
_LONGEST_NAME = 24
_DOTS_PER_INCH = 130
_PANEL_WIDTH, _PANEL_HEIGHT = 3.6, 3.2
_UNDEFINED = "#dfe4e8"


def draw_manifold(
    target: str | Path | BinaryIO,
    format: str,
    columns: Sequence[NumberGrid | LevelGrid],
    z_1: Grid,
    z_2: Grid,
) -> None:
    """Draws a panel for each of the first 40 columns and saves the picture, as `png` or `svg`.

    A panel shows the median of numbers or dates, the probability of the second of two levels, or
    the most probable of several levels. z_1 increases from left to right, z_2 from bottom to top.
    """
    shown = columns[:_MOST_PANELS]
    with drawing(_texts(shown), format) as lettering:
        across = min(_PANELS_ACROSS, max(len(shown), 1))
        down = max(1, math.ceil(len(shown) / across))
        size = _PANEL_WIDTH * across, _PANEL_HEIGHT * down + 0.6
        figure = new_figure(*size, layout="constrained")
        figure.suptitle(_title(len(columns)), fontsize=11)
        for place, column in enumerate(shown, start=1):
            axes = figure.add_subplot(down, across, place)
            axes.set_facecolor(_UNDEFINED)
            axes.set_title(
                lettering.drawn(column.name, _LONGEST_NAME), fontsize=10, parse_math=False
            )
            _name_axes(axes, z_1, z_2)
            if isinstance(column, NumberGrid):
                _draw_numbers(figure, axes, column)
            else:
                _draw_levels(figure, axes, column, lettering)
        save_figure(figure, target, format, _DOTS_PER_INCH)


def _title(n_columns: int) -> str:
    n_hidden = n_columns - _MOST_PANELS
    hidden = f" (and {n_hidden} columns more, in the JSON form)" if n_hidden > 0 else ""
    return f"The decoder on the prior's quantiles{hidden}"


def _texts(columns: Sequence[NumberGrid | LevelGrid]) -> list[str]:
    """Returns all names that the picture may contain, for which fonts are chosen."""
    levels = [
        level for column in columns if isinstance(column, LevelGrid) for level in column.levels
    ]
    return [*(column.name for column in columns), *levels]


def _name_axes(axes: Any, z_1: Grid, z_2: Grid) -> None:
    n = len(z_1)
    ticks = [0, (n - 1) // 2, n - 1]
    axes.set_xticks(ticks, [f"{z_1[i]:.1f}" for i in ticks], fontsize=8)
    axes.set_yticks(ticks, [f"{z_2[i]:.1f}" for i in ticks], fontsize=8)
    axes.set_xlabel("z₁", fontsize=8)
    axes.set_ylabel("z₂", fontsize=8)


def _draw_numbers(figure: Any, axes: Any, column: NumberGrid) -> None:
    cells = [cell for row in column.median.tolist() for cell in row]
    are_dates = any(isinstance(cell, pd.Timestamp) for cell in cells)
    numbers = np.array([_number(cell) for cell in cells]).reshape(column.median.shape)
    image = axes.imshow(np.ma.masked_invalid(numbers), origin="lower", cmap="viridis")
    bar = figure.colorbar(image, ax=axes, shrink=0.8)
    bar.ax.tick_params(labelsize=7)
    bar.set_label("median", fontsize=8)
    if are_dates:
        spans_days = numbers.size and np.nanmax(numbers) - np.nanmin(numbers) > 1.0
        bar.ax.yaxis.set_major_formatter(_date if spans_days else _time_of_day)


def _number(cell: Any) -> float:
    """Returns a quantile as a number: dates as days since 1970, None (all cells missing) as NaN."""
    if cell is None:
        return math.nan
    return cell.timestamp() / 86_400 if isinstance(cell, pd.Timestamp) else float(cell)


def _date(days: float, _: Any = None) -> str:
    return str(np.datetime64(math.floor(days), "D"))


def _time_of_day(days: float, _: Any = None) -> str:
    return f"{pd.Timestamp(days, unit='D'):%H:%M}"


def _draw_levels(figure: Any, axes: Any, column: LevelGrid, lettering: Lettering) -> None:
    names = [lettering.drawn(level, _LONGEST_NAME) for level in column.levels]
    if len(column.levels) == 2:
        image = axes.imshow(
            column.probability[..., 1], origin="lower", cmap="viridis", vmin=0.0, vmax=1.0
        )
        bar = figure.colorbar(image, ax=axes, shrink=0.8)
        bar.ax.tick_params(labelsize=7)
        bar.set_label(f"P({names[1]})", fontsize=8, parse_math=False)
        return
    best = column.probability.argmax(-1)
    present, counts = np.unique(best, return_counts=True)
    named = sorted(present[np.argsort(-counts, kind="stable")][:_MOST_NAMED_LEVELS].tolist())
    _draw_best(axes, names, best, named, has_others=len(present) > len(named))


def _draw_best(axes: Any, names: list[str], best: Any, named: list[int], has_others: bool) -> None:
    """Draws the most probable level at each z, whose code is `best`, with a legend: one colour for
    each code in `named`, grey for all others."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    colours = {code: colormaps["tab10"](i)[:3] for i, code in enumerate(named)}
    grey = to_rgb("#9aa5b1")
    pixels = np.array([[colours.get(int(code), grey) for code in row] for row in best])
    axes.imshow(pixels, origin="lower")
    handles = [Patch(color=c, label=names[code]) for code, c in colours.items()]
    handles += [Patch(color=grey, label="others")] if has_others else []
    legend = axes.legend(
        handles=handles, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
