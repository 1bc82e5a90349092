"""A picture of real against synthetic: one small panel per column."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pandas as pd

from gcvae.glyphs import Lettering, width
from gcvae.pictures import drawing, new_figure, save_figure

if TYPE_CHECKING:
    from gcvae.schema import Column, TableSchema

REAL = "#a9bccd"
SYNTHETIC = "#d9594c"
_INK = "#2f3e4d"
_FAINT = "#8a97a3"
_MOST_COLUMNS = 36
_MOST_LEVELS = 10
_LONGEST_NAME = 26
_LONGEST_LEVEL = 14
_WIDEST_GRID = 4
_FEWEST_PLACES = 4
_DOTS_PER_INCH = 150
_TWO_DAYS_SECONDS = 2 * 86_400


def draw_comparison(
    real: pd.DataFrame, synthetic: pd.DataFrame, schema: TableSchema, stream: BinaryIO
) -> None:
    """Draws every modelled column's distribution in both tables as PNG.

    Numbers and dates become histograms over common bins, levels become pairs of bars; a column
    with missing cells says both shares. Heights are shares of the rows of each table.

    Args:
        real: The training table, typed.
        synthetic: Rows of the model, typed.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    modelled = [column for column in schema if column.is_modelled]
    shown = modelled[:_MOST_COLUMNS]
    n_across = min(_WIDEST_GRID, len(shown))
    n_down = math.ceil(len(shown) / n_across)
    with drawing(_texts(shown, real, synthetic), "png") as lettering:
        figure = new_figure(3.3 * n_across, 2.25 * n_down + 0.7, layout=None)
        figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1))
        panels = figure.subplots(n_down, n_across, squeeze=False).ravel()
        for panel, column in zip(panels, shown, strict=False):
            _draw_column(panel, column, real[column.name], synthetic[column.name], lettering)
        for panel in panels[len(shown) :]:
            panel.set_axis_off()
        _write_legend(figure, len(real), len(synthetic), n_hidden=len(modelled) - len(shown))
        save_figure(figure, stream, "png", _DOTS_PER_INCH)


def _texts(columns: list[Column], *tables: pd.DataFrame) -> set[str]:
    """What may be written of the columns' names and levels."""
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
    bold = {"fontsize": 10, "fontweight": "bold", "color": _INK}
    name = lettering.drawn(column.name, _LONGEST_NAME)
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
    return column.kind in ("categorical", "ordinal", "boolean") or (
        column.kind == "integer" and real.nunique() <= _MOST_LEVELS
    )


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
    """Bin edges over both tables, widened by no more than the far tail of either."""
    both = [values for values in (real, synthetic) if len(values)]
    low = min(np.quantile(values, 0.002) for values in both)
    high = max(np.quantile(values, 0.998) for values in both)
    if low == high:
        low, high = low - 0.5, high + 0.5
    n_bins = int(np.clip(np.sqrt(len(real)), 12, 40))
    if _are_whole(real) and _are_whole(synthetic):
        step = max(1, math.ceil((high - low) / n_bins))  # bins of equally many whole numbers
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
    beside = max(0.6, (_FEWEST_PLACES - len(levels)) / 2)  # two levels make no walls of colour
    panel.set_xlim(-beside, len(levels) - 1 + beside)
    n_hidden = len(shares) - len(levels)
    if n_hidden:
        panel.set_xlabel(f"and {n_hidden} rarer levels", fontsize=7, color=_FAINT)


def _shown_levels(column: Column, shares: pd.DataFrame) -> list[Any]:
    frequent = list(shares.sort_values("real", ascending=False).index[:_MOST_LEVELS])
    if column.kind == "categorical":
        return frequent
    if column.kind == "boolean":
        return [level for level in (False, True) if level in frequent]
    order = list(column.levels) if column.levels is not None else sorted(shares.index)
    return [level for level in order if level in frequent]


def _short_number(value: float, _place: int) -> str:
    """A number for a tick: `250k` rather than `250000`."""
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * size:
            return f"{value / size:g}{suffix}"
    return f"{value:g}".replace("-", "\N{MINUS SIGN}")


def _name(level: object, lettering: Lettering) -> str:
    text = f"{level:g}" if isinstance(level, float) else str(level)
    return lettering.drawn(text, _LONGEST_LEVEL)


def _write_missing(panel: Any, real: pd.Series, synthetic: pd.Series) -> None:
    shares = real.isna().mean(), synthetic.isna().mean()
    if any(shares):
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
