"""Draws dependency maps as heat maps, whose cell (i, j) shows the dependence of columns i and j.

Colours of signed values range from blue (-1) over white (0) to red (1), those of unsigned values
from white (0) to black (1). In maps of differences, the limits are plus and minus the largest
absolute value, and unsigned values range from green over white to purple.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcvae.figures.figures import drawing, new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_COLUMNS_WITH_NUMBERS, _MOST_COLUMNS_WITH_MARKS = 16, 80
_LARGEST_CELL_INCHES, _SMALLEST_CELL_INCHES, _SLANTED_CELL_INCHES = 0.55, 0.075, 0.3
_SMALLEST_MAP_INCHES, _USUAL_MAP_INCHES, _LARGEST_MAP_INCHES = 3.5, 12.0, 45.0
_LARGEST_FONT, _SMALLEST_FONT, _TEXT_FONT, _TITLE_FONT = 9.0, 3.0, 8.5, 12.0
_LONGEST_NAME = 24
_DOTS_PER_INCH = 150
_UNDEFINED, _INK, _FAINT = "#f2c14e", "#262626", "#6b7680"
_WEAKEST_MARKED = 0.1
"""Share of the limit of the colours; cells below minus this share are marked as negative."""


class Caption(NamedTuple):
    """Texts of the picture of one kind of map.

    Attributes:
        title: Title of the picture.
        signed: Caption of the colour bar of signed values.
        low, high: Meaning of the lower and the upper end of this bar.
        unsigned: Caption of the colour bar of unsigned values.
    """

    title: str
    signed: str
    low: str
    high: str
    unsigned: str


_TAU = "Kendall's tau", "discordant", "concordant"
_LESS = "difference of tau", "too discordant", "too concordant"
_V, _RHO = "Cramér's V", "mean |rho|"
CAPTIONS = {
    "local": Caption("Kendall's tau of the decoder copula at one place", *_TAU, _RHO),
    "expected": Caption("Kendall's tau of the decoder copula, expected over z", *_TAU, _RHO),
    "total": Caption("Kendall's tau-b of the model's rows", *_TAU, _V),
    "data": Caption("Kendall's tau-b of the training table", *_TAU, _V),
    "difference": Caption(
        "Kendall's tau-b, the model's rows less the table's", *_LESS, f"difference of\n{_V}"
    ),
}


class Scale(NamedTuple):
    """Colour scale of some pairs of columns.

    Attributes:
        pairs: Mask of the pairs that the scale colours. Shape: (D, D).
        colours: Name of a matplotlib colour map.
        least: Value at the lower end of the scale.
        limit: Value at the upper end of the scale.
        caption: Caption of the colour bar.
        low: Meaning of the lower end, such as "none".
        high: Meaning of the upper end, such as "full".
    """

    pairs: NDArray[np.bool_]
    colours: str
    least: float
    limit: float
    caption: str
    low: str
    high: str


def draw_heat_map(
    target: str | Path | BinaryIO,
    format: str,
    columns: Sequence[str],
    values: NDArray[np.float64],
    is_unsigned: NDArray[np.bool_],
    kind: str,
) -> None:
    """Draws a dependency map and saves the picture, with a colour bar for each scale.

    The diagonal is blank, and NaN is yellow. Maps of up to 16 columns show numbers; maps of up to
    80 columns mark negative cells. The size of the picture depends on the number of columns.

    Args:
        target: Path or binary file to which the picture is written.
        format: `png` or `svg`.
        columns: Names of the D columns, in the order in which they are drawn.
        values: Dependence of each pair of columns, NaN if undefined. Shape: (D, D).
        is_unsigned: Mask of the pairs whose values have no sign. Shape: (D, D).
        kind: Kind of the map; a key of `CAPTIONS`.
    """
    n, title = len(columns), CAPTIONS[kind].title
    usual = np.clip(_LARGEST_CELL_INCHES * n, _SMALLEST_MAP_INCHES, _USUAL_MAP_INCHES)
    side = float(min(max(usual, _SMALLEST_CELL_INCHES * n), _LARGEST_MAP_INCHES))
    scales = scales_of(values, is_unsigned, kind)
    with drawing(columns, format) as lettering:
        figure = new_figure(side, side, layout=None)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_title(title, loc="left", size=_TITLE_FONT, color=_INK)
        axes.spines[:].set_visible(False)
        _name_axes(axes, [lettering.drawn(name, _LONGEST_NAME) for name in columns], side)
        _draw_cells(axes, values, scales)
        for scale, top in zip(scales, (1.0, 0.5), strict=False):
            _draw_colour_bar(axes, scale, top, side)
        if any(np.isnan(values[scale.pairs]).any() for scale in scales):
            _explain_undefined(axes, (1.0 + 0.25 / side, -0.15 / side))
        save_figure(figure, target, format, _DOTS_PER_INCH, f"{title}, {n} columns", "tight")


def scales_of(
    values: NDArray[np.float64], is_unsigned: NDArray[np.bool_], kind: str
) -> list[Scale]:
    """Returns a colour scale for signed pairs and one for unsigned pairs, if there are any.

    White stands for zero. The colours are distinguishable with red-green colour blindness. The
    arguments are those of `draw_heat_map`.
    """
    caption, is_difference = CAPTIONS[kind], kind == "difference"
    is_pair = ~np.eye(len(values), dtype=bool)
    signed, unsigned = is_pair & ~is_unsigned, is_pair & is_unsigned
    scales = []
    if signed.any() or not unsigned.any():
        limit = _limit(values[signed], is_difference)
        scales.append(Scale(signed, "RdBu_r", -limit, limit, *caption[1:4]))
    if unsigned.any():
        limit = _limit(values[unsigned], is_difference)
        of_which = f"{caption.unsigned}\nof pairs with a column\nwhose levels have no order"
        scales.append(
            Scale(unsigned, "PRGn_r", -limit, limit, of_which, "too little", "too much")
            if is_difference
            else Scale(unsigned, "Greys", 0.0, limit, of_which, "none", "full")
        )
    return scales


def _limit(values: NDArray[np.float64], is_difference: bool) -> float:
    """Returns the upper end of a colour scale: 1 or, in maps of differences, the largest absolute
    value, rounded up to a multiple of 0.05."""
    if not is_difference or not np.isfinite(values).any():
        return 1.0
    return float(np.ceil(max(np.nanmax(np.abs(values)), 0.05) * 20.0) / 20.0)


def _name_axes(axes: Axes, names: Sequence[str], side: float) -> None:
    """Writes the columns' names, unless they would be too small to read. `side` is the length of
    the map's side in inches."""
    cell = side / max(len(names), 1)
    font = min(0.85 * cell * 72, _LARGEST_FONT)
    axes.tick_params(length=0, pad=4)
    if font < _SMALLEST_FONT:
        axes.set(xticks=[], yticks=[])
        axes.set_xlabel(f"{len(names)} columns, too many for their names", size=_TEXT_FONT)
        return
    style: dict[str, Any] = {"size": font, "parse_math": False}  # a name may have a $
    axes.set_yticks(range(len(names)), names, **style)
    turn, va = (45, "top") if cell > _SLANTED_CELL_INCHES else (90, "center")
    style |= {"rotation": turn, "va": va, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(names)), names, **style)


def _draw_cells(axes: Axes, values: NDArray[np.float64], scales: Sequence[Scale]) -> None:
    """Colours the cells; writes numbers if there are few columns, else marks negative cells.

    Marks are needed because red and blue look alike in greyscale prints and to some readers.
    """
    from matplotlib.colors import to_rgba

    colours = np.full((*values.shape, 4), 255, dtype=np.uint8)
    for scale in scales:
        colours[scale.pairs] = _mappable(scale).to_rgba(values[scale.pairs], bytes=True)
        colours[scale.pairs & np.isnan(values)] = 255 * np.array(to_rgba(_UNDEFINED))
    # Colours, not values: imshow would look up the colour of every dot of the picture.
    axes.imshow(colours, interpolation="nearest")
    is_dark = colours[..., :3] @ (0.2126, 0.7152, 0.0722) < 128.0
    inks = np.where(is_dark, "white", _INK)
    for scale in scales:
        if len(values) <= _MOST_COLUMNS_WITH_NUMBERS:
            for i, j in np.argwhere(scale.pairs):
                text = _number(values[i, j], is_signed=scale.least < 0.0)
                ink = _FAINT if text == "0" else inks[i, j]
                axes.text(j, i, text, ha="center", va="center", size=8, color=ink)
        elif len(values) <= _MOST_COLUMNS_WITH_MARKS:
            i, j = np.nonzero(scale.pairs & (values < -_WEAKEST_MARKED * scale.limit))
            axes.scatter(j, i, s=20, marker="_", linewidths=0.8, c=inks[i, j])


def _number(value: float, *, is_signed: bool) -> str:
    """Returns the text of a cell, with two decimals; × for NaN.

    >>> [_number(x, is_signed=True) for x in (0.25, -0.5, -0.001, np.nan)]
    ['+0.25', '−0.50', '0', '×']
    >>> _number(0.25, is_signed=False)
    '0.25'
    """
    if np.isnan(value):
        return "×"
    sign = "+" if is_signed else ""
    return "0" if abs(value) < 0.005 else f"{value:{sign}.2f}".replace("-", "\N{MINUS SIGN}")


def _mappable(scale: Scale) -> Any:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    return ScalarMappable(Normalize(scale.least, scale.limit), scale.colours)


def _draw_colour_bar(axes: Axes, scale: Scale, top: float, side: float) -> None:
    """Draws a colour bar right of the map. `top` is the upper edge of its caption as a share of the
    map's height, `side` the length of the map's side in inches."""
    caption_inches = 0.2 + 0.16 * len(scale.caption.split("\n"))
    bottom = top - caption_inches / side - 0.25
    bar = axes.inset_axes((1.0 + 0.25 / side, bottom, 0.18 / side, 0.25))
    axes.figure.colorbar(_mappable(scale), cax=bar).outline.set_visible(False)
    places = np.linspace(scale.least, scale.limit, 5)
    texts = [f"{place:.3g}".replace("-", "\N{MINUS SIGN}") for place in places]
    texts[0] += f" {scale.low}"
    texts[-1] += f" {scale.high}"
    bar.set_yticks(places, texts, size=_TEXT_FONT, color=_INK)
    bar.set_title(scale.caption, loc="left", size=_TEXT_FONT, color=_INK, pad=9)


def _explain_undefined(axes: Axes, corner: tuple[float, float]) -> None:
    from matplotlib.patches import Patch

    axes.legend(
        handles=[Patch(facecolor=_UNDEFINED, label="not defined: a column\nwith one value only")],
        loc="upper left",
        bbox_to_anchor=corner,
        borderpad=0.0,
        borderaxespad=0.0,
        frameon=False,
        fontsize=_TEXT_FONT,
    )
