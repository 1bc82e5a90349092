"""Draws a picture that compares the columns of real and synthetic rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pandas as pd

from gcvae.figures.figures import drawing, new_figure, save_figure
from gcvae.figures.fonts import Lettering, width
from gcvae.numerics.isolated_values import isolated_frequent_values
from gcvae.schema.kinds import Outcomes

if TYPE_CHECKING:
    from gcvae.schema.columns import Column, TableSchema

REAL = "#a9bccd"
SYNTHETIC = "#d9594c"
_INK = "#2f3e4d"
_FAINT = "#8a97a3"
_MOST_COLUMNS = 36
_MOST_LEVELS = 10
_LONGEST_LEVEL = 14
_WIDEST_GRID = 4
_FEWEST_PLACES = 4
_DOTS_PER_INCH = 150
_TWO_DAYS_SECONDS = 2 * 86_400
_PANEL_INCHES = 3.3, 2.25
_TITLE_INCHES = 2.9
"""Maximum width of a panel's title."""
_TITLE_FONT = 10
_MISSING_INCHES = 1.35


def draw_comparison(
    real: pd.DataFrame, synthetic: pd.DataFrame, schema: TableSchema, stream: BinaryIO
) -> None:
    """Plots the distribution of each column in a real and a synthetic table as a PNG picture.

    Numbers and dates become histograms with common bins, levels become pairs of bars; heights are
    shares of the table's rows. Shares of missing cells are written as text.

    Args:
        real: The training table, with typed cells as `parse_table` returns them.
        synthetic: Synthetic rows, with typed cells.
        schema: Schema of both tables.
        stream: File to write the picture to.
    """
    modelled = [c for c in schema if c.is_modelled and not c.drop]
    shown = modelled[:_MOST_COLUMNS]
    n_across = min(_WIDEST_GRID, max(len(shown), 2))
    n_down = math.ceil(len(shown) / n_across)
    width, height = _PANEL_INCHES[0] * n_across, _PANEL_INCHES[1] * n_down + 0.7
    with drawing(_texts(shown, real, synthetic), "png") as lettering:
        figure = new_figure(width, height, layout=None)
        figure.set_layout_engine("constrained", w_pad=0.12, h_pad=0.1)
        panels = figure.subplots(n_down, n_across, squeeze=False).ravel()
        for panel, column in zip(panels, shown, strict=False):
            _draw_column(panel, column, real[column.name], synthetic[column.name], lettering)
        for panel in panels[len(shown) :]:
            panel.set_axis_off()
        _write_legend(figure, len(real), len(synthetic), n_hidden=len(modelled) - len(shown))
        save_figure(figure, stream, "png", _DOTS_PER_INCH)


def _texts(columns: list[Column], *tables: pd.DataFrame) -> set[str]:
    """Returns all names that the picture may contain, so that its fonts have their characters."""
    levels = (
        str(level)
        for column in columns
        for table in tables
        if _is_drawn_by_level(column, table[column.name])
        for level in table[column.name].dropna().unique()
    )
    return {*(column.name for column in columns), *levels}


def _draw_column(
    panel: Any, column: Column, real: pd.Series, synthetic: pd.Series, lettering: Lettering
) -> None:
    bold = {"fontsize": _TITLE_FONT, "fontweight": "bold", "color": _INK}
    room = _TITLE_INCHES - (_MISSING_INCHES if _has_missing(real, synthetic) else 0.0)
    name = _fitting(column.name, room, lettering)
    panel.set_title(name, loc="left", parse_math=False, **bold)  # a name may have a $
    for side in ("top", "right", "left"):
        panel.spines[side].set_visible(False)
    panel.spines["bottom"].set_color(_FAINT)
    panel.tick_params(labelsize=7.5, colors=_INK, length=2, color=_FAINT)
    panel.set_yticks([])
    if _is_drawn_by_level(column, real):
        _draw_levels(panel, column, real, synthetic, lettering)
    else:
        _draw_histogram(panel, real, synthetic)
    _write_missing(panel, real, synthetic)


def _is_drawn_by_level(column: Column, real: pd.Series) -> bool:
    return column.kind.has_levels or (column.kind.is_whole and real.nunique() <= _MOST_LEVELS)


def _draw_histogram(panel: Any, real: pd.Series, synthetic: pd.Series) -> None:
    is_date = pd.api.types.is_datetime64_any_dtype(real)
    values = [_numbers(real, is_date), _numbers(synthetic, is_date)]
    edges = _common_edges(*values)
    heights = [np.histogram(v, edges)[0] / max(len(v), 1) for v in values]
    panel.stairs(heights[0], edges, fill=True, color=REAL)
    panel.stairs(heights[1], edges, color=SYNTHETIC, linewidth=1.6)
    panel.set_ylim(0, None)
    panel.set_xlim(edges[0], edges[-1])
    panel.locator_params(axis="x", nbins=5)
    panel.xaxis.set_major_formatter(_short_number)
    if is_date:
        labels = pd.to_datetime(pd.Series(panel.get_xticks()), unit="s")
        shown = "%H:%M" if edges[-1] - edges[0] <= _TWO_DAYS_SECONDS else "%Y-%m"
        panel.set_xticks(panel.get_xticks(), labels.dt.strftime(shown))
        panel.set_xlim(edges[0], edges[-1])


def _numbers(cells: pd.Series, is_date: bool) -> np.ndarray[Any, np.dtype[np.float64]]:
    present = cells.dropna()
    if is_date:
        return present.to_numpy("datetime64[s]").astype(np.float64)
    return present.to_numpy(np.float64)


def _common_edges(
    real: np.ndarray[Any, Any], synthetic: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Returns bin edges for both tables, from the 0.2 % to the 99.8 % quantile.

    Frequent values far from all others, such as -9999, do not extend the range.
    """
    apart = isolated_frequent_values(real)
    both = [values for values in (real, synthetic) if len(values)]
    both = [near for v in both if len(near := v[~np.isin(v, apart)])] or both
    low = min(np.quantile(values, 0.002) for values in both)
    high = max(np.quantile(values, 0.998) for values in both)
    if low == high:
        low, high = low - 0.5, high + 0.5
    n_bins = int(np.clip(np.sqrt(len(real)), 12, 40))
    if _are_whole(real) and _are_whole(synthetic):
        step = max(1, math.ceil((high - low) / n_bins))  # every bin contains equally many integers
        return np.arange(math.floor(low), math.ceil(high) + step + 1, step) - 0.5
    return np.linspace(low, high, n_bins + 1)


def _are_whole(values: np.ndarray[Any, Any]) -> bool:
    return bool(np.all(values == np.floor(values)))


def _draw_levels(
    panel: Any, column: Column, real: pd.Series, synthetic: pd.Series, lettering: Lettering
) -> None:
    shares = pd.DataFrame(
        {
            "real": real.dropna().value_counts(normalize=True),
            "synthetic": synthetic.dropna().value_counts(normalize=True),
        }
    ).fillna(0.0)
    levels = _shown_levels(column, shares)
    places = np.arange(len(levels))
    panel.bar(places - 0.2, shares["real"].reindex(levels), width=0.4, color=REAL)
    panel.bar(places + 0.2, shares["synthetic"].reindex(levels), width=0.4, color=SYNTHETIC)
    names = [_name(level, lettering) for level in levels]
    is_crowded = sum(map(width, names)) > 22
    panel.set_xticks(
        places,
        names,
        rotation=35 if is_crowded else 0,
        ha="right" if is_crowded else "center",
        rotation_mode="anchor",
        parse_math=False,
    )
    beside = max(0.6, (_FEWEST_PLACES - len(levels)) / 2)  # few bars do not fill the panel
    panel.set_xlim(-beside, len(levels) - 1 + beside)
    n_hidden = len(shares) - len(levels)
    if n_hidden:
        rarer = f"and {n_hidden} rarer level{'s' * (n_hidden > 1)}"
        panel.set_xlabel(rarer, fontsize=7, color=_FAINT)


def _shown_levels(column: Column, shares: pd.DataFrame) -> list[Any]:
    frequent = list(shares.sort_values("real", ascending=False).index[:_MOST_LEVELS])
    if column.kind.outcomes is Outcomes.NOMINAL_LEVELS:
        return frequent
    order = list(column.typed_levels) or sorted(shares.index)
    return [level for level in order if level in frequent]


def _short_number(value: float, _place: int) -> str:
    """Label of an axis, such as `250k` for 250000."""
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * size:
            return f"{value / size:g}{suffix}"
    return f"{value:g}".replace("-", "\N{MINUS SIGN}")


def _name(level: object, lettering: Lettering) -> str:
    text = f"{level:g}" if isinstance(level, float) else str(level)
    return lettering.drawn(text, _LONGEST_LEVEL)


def _fitting(text: str, inches: float, lettering: Lettering) -> str:
    """Returns a column's name as it is drawn in the title of the column's panel.

    A name that is wider than `inches` is shortened with an ellipsis. `lettering` contains the fonts
    of the picture, and the characters that they lack.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=_TITLE_FONT, weight="bold")

    def is_wider(text: str) -> bool:
        points, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
        return points > inches * 72

    longest = width(text)
    while longest > 1 and is_wider(lettering.drawn(text, longest)):
        longest -= 1
    return lettering.drawn(text, longest)


def _has_missing(real: pd.Series, synthetic: pd.Series) -> bool:
    return bool(real.isna().any() or synthetic.isna().any())


def _write_missing(panel: Any, real: pd.Series, synthetic: pd.Series) -> None:
    shares = real.isna().mean(), synthetic.isna().mean()
    if _has_missing(real, synthetic):
        text = f"missing {shares[0]:.1%} / {shares[1]:.1%}"
        panel.set_title(text, loc="right", fontsize=7, color=_FAINT)


def _write_legend(figure: Any, n_real: int, n_synthetic: int, *, n_hidden: int) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(color=REAL, label=f"real, {n_real:,} rows"),
        Patch(color=SYNTHETIC, label=f"synthetic, {n_synthetic:,} rows"),
    ]
    title = f"{n_hidden} more columns are not shown" if n_hidden else None
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=2,
        frameon=False,
        fontsize=10,
        title=title,
        title_fontsize=8,
    )
