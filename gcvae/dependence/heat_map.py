"""Pictures of dependency maps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gcvae.figures.figures import drawing, new_figure, save_figure
from gcvae.figures.fonts import Lettering

_MOST_COLUMNS_WITH_NUMBERS = 16
_MOST_COLUMNS_WITH_SIGNS = 80
_LARGEST_CELL, _SMALLEST_CELL, _LARGEST_MAP, _SMALLEST_MAP = 0.55, 0.075, 20.0, 3.5
"""Inches: of a cell, and of the map while its cells are larger than the smallest."""
_MOST_INCHES = 45.0
_POINTS_PER_INCH = 72
_LARGEST_FONT, _SMALLEST_FONT = 9.0, 3.0
_TITLE_FONT, _TEXT_FONT = 12.0, 8.5
_LONGEST_NAME = 24
_DOTS_PER_INCH, _DOTS_OF_LARGE_MAPS = 150, 120
_DIAGONAL = "#ffffff"
_UNDEFINED = "#f2c14e"
_INK = "#333333"
_WEAK = 0.1
"""A pair that is weaker than this share of the scale has no mark of its sign."""
_SIGNED, _UNSIGNED, _UNSIGNED_DIFFERENCE = "RdBu_r", "Greys", "PRGn_r"
"""White is none in each: red and blue are signs, grey has none. All are told apart by people who do
not tell red from green, and printed in grey the negative cells have a mark."""
_NO_SIGN = "of pairs with a column\nwhose levels have no order"
_UNDEFINED_NOTE = "not defined: a column with one value only"


@dataclass(frozen=True)
class _Caption:
    """What a kind's picture says.

    Attributes:
        signed: What the signed cells are, and what their two ends mean.
        unsigned: What the cells without a sign are.
    """

    title: str
    signed: str
    low: str
    high: str
    unsigned: str


_TAU = "Kendall's tau", "discordant", "concordant"
_SHARE = "share of the\ncorrelation of\nnormal scores", "discordant", "concordant"
_V = "Cramér's V"
CAPTIONS = {
    "local": _Caption("Kendall's tau of the decoder copula at one place", *_TAU, "mean |rho|"),
    "expected": _Caption(
        "Kendall's tau of the decoder copula, expected over z", *_TAU, "mean |rho|"
    ),
    "within": _Caption(
        "Correlation within z: what is left once z is known", *_SHARE, "share without sign"
    ),
    "between": _Caption(
        "Correlation between z: what runs through the latent vector", *_SHARE, "share without sign"
    ),
    "total": _Caption("Kendall's tau-b of the model's rows", *_TAU, _V),
    "data": _Caption("Kendall's tau-b of the training table", *_TAU, _V),
    "difference": _Caption(
        "Kendall's tau-b, the model's rows less the table's",
        "difference of tau",
        "too discordant",
        "too concordant",
        f"difference of\n{_V}",
    ),
}


def draw_heat_map(
    target: str | Path | BinaryIO,
    format: str,
    columns: Sequence[str],
    values: NDArray[np.float64],
    is_unsigned: NDArray[np.bool_],
    kind: str,
) -> None:
    """Draws a map in the order of its columns, and its legends.

    Pairs that have a sign are red or blue, those with a nominal column grey. The diagonal is blank;
    a pair of which nothing can be said, since a column has one value only, is yellow.

    Args:
        target: A path or an open binary file.
        format: `png` or `svg`.
        columns: Names.
        values: Of the pairs, NaN where nothing can be said. Shape: (D, D).
        is_unsigned: True for pairs with a nominal column. Shape: (D, D).
        kind: Of the map, which says its captions.
    """
    with drawing(columns, format) as lettering:
        cells = _Cells.of(values, is_unsigned, kind)
        sheet = _Sheet.of(columns, cells, lettering)
        figure = new_figure(sheet.width, sheet.height, layout=None)
        axes = figure.add_axes(sheet.box(sheet.left, sheet.bottom, sheet.map_side, sheet.map_side))
        _show(axes, cells)
        _write(figure, sheet, (sheet.left, sheet.title_line), cells.caption.title, sheet.title_font)
        _name_axes(axes, sheet)
        if len(columns) <= _MOST_COLUMNS_WITH_NUMBERS:
            _write_numbers(axes, cells)
        elif len(columns) <= _MOST_COLUMNS_WITH_SIGNS:
            _mark_signs(axes, cells)
        for scale, low in zip(cells.scales, sheet.legend_lines, strict=True):
            _draw_legend(figure, sheet, scale, low)
        if cells.are_undefined.any():
            _explain_undefined(figure, sheet)
        save_figure(figure, target, format, sheet.dots_per_inch)


@dataclass(frozen=True)
class _Scale:
    """Colours of cells, and what their legend says.

    Attributes:
        limit: Where the colours end.
        ticks: Places on the scale, with what stands at them.
    """

    colours: str
    least: float
    limit: float
    caption: str
    ticks: dict[float, str]

    def mappable(self) -> Any:
        """What gives numbers their colours."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize

        return ScalarMappable(Normalize(self.least, self.limit), self.colours)


@dataclass(frozen=True)
class _Cells:
    """The cells of a picture, in its order, and the scales of those that have a sign or none.

    Shape: values, is_unsigned (D, D).
    """

    values: NDArray[np.float64]
    is_unsigned: NDArray[np.bool_]
    caption: _Caption
    signed: _Scale | None
    unsigned: _Scale | None

    @classmethod
    def of(cls, values: NDArray[np.float64], is_unsigned: NDArray[np.bool_], kind: str) -> _Cells:
        """The cells of a map; a scale that no pair has is left out."""
        is_pair = ~np.eye(len(values), dtype=bool)
        caption, is_difference = CAPTIONS[kind], kind == "difference"
        signed = unsigned = None
        if (is_pair & ~is_unsigned).any() or len(values) < 2:
            limit = _limit(values[is_pair & ~is_unsigned], is_difference)
            ends = caption.low, caption.high
            signed = _Scale(_SIGNED, -limit, limit, caption.signed, _ticks(-limit, limit, *ends))
        if (is_pair & is_unsigned).any():
            limit = _limit(values[is_pair & is_unsigned], is_difference)
            least, colours = (-limit, _UNSIGNED_DIFFERENCE) if is_difference else (0.0, _UNSIGNED)
            ends = ("too little", "too much") if is_difference else ("none", "full")
            said = f"{caption.unsigned}\n{_NO_SIGN}"
            unsigned = _Scale(colours, least, limit, said, _ticks(least, limit, *ends))
        return cls(values, is_unsigned, caption, signed, unsigned)

    @property
    def scales(self) -> list[_Scale]:
        """Those that there are, the upper legend first."""
        return [scale for scale in (self.signed, self.unsigned) if scale is not None]

    @property
    def are_undefined(self) -> NDArray[np.bool_]:
        """The pairs of which nothing can be said. Shape: (D, D)."""
        return np.isnan(self.values)


def _limit(values: NDArray[np.float64], is_difference: bool) -> float:
    """Where the colours end: at 1, but for differences at the largest of them."""
    if not is_difference or not np.isfinite(values).any():
        return 1.0
    return float(np.ceil(max(np.nanmax(np.abs(values)), 0.05) * 20.0) / 20.0)


def _ticks(least: float, limit: float, low: str, high: str) -> dict[float, str]:
    """What stands at a scale's ends and between them.

    >>> _ticks(-1.0, 1.0, "discordant", "concordant")[-1.0]
    '−1 discordant'
    """
    texts = {v: f"{v:.3g}".replace("-", "\N{MINUS SIGN}") for v in np.linspace(least, limit, 5)}
    texts[least], texts[limit] = f"{texts[least]} {low}", f"{texts[limit]} {high}"
    return {float(value): text for value, text in texts.items()}


@dataclass(frozen=True)
class _Sheet:
    """Where things stand, in inches. It is computed: letting matplotlib measure a thousand names
    takes half a minute.

    Attributes:
        left: Room for the names beside the map.
        below: Room for the names below it.
        right: Room for the legends.
        title_inches: Of the title.
    """

    names: tuple[str, ...]
    map_side: float
    font: float
    left: float
    below: float
    right: float
    title_inches: float
    legend_inches: tuple[float, ...]

    @classmethod
    def of(cls, columns: Sequence[str], cells: _Cells, lettering: Lettering) -> _Sheet:
        """Large cells for few columns, names that can still be read for many."""
        n = max(len(columns), 1)
        roomy = float(np.clip(_LARGEST_CELL * n, _SMALLEST_MAP, _LARGEST_MAP))
        side = min(max(roomy, _SMALLEST_CELL * n), _MOST_INCHES)
        font = min(0.85 * side / n * _POINTS_PER_INCH, _LARGEST_FONT)
        zoom = _zoom(side)
        names = tuple(lettering.drawn(name, _LONGEST_NAME) for name in columns)
        is_named = font >= _SMALLEST_FONT
        longest = max((lettering.inches(name, font) for name in names), default=0.0)
        longest, height = (longest, font / _POINTS_PER_INCH) if is_named else (0.0, 0.0)
        slant = math.sqrt(0.5) * (longest + height) if _are_slanted(side, n) else longest
        text, tick = _TEXT_FONT * zoom, 0.32 * zoom
        widths = [0.2]
        for scale in cells.scales:
            widths += [lettering.inches(line, text) for line in scale.caption.split("\n")]
            widths += [tick + lettering.inches(label, text) for label in scale.ticks.values()]
        return cls(
            names,
            side,
            font,
            left=max(0.25 + longest, slant - side / n / 2 + 0.2),
            below=slant + 0.15,
            right=0.25 * zoom + max(widths) + 0.15,
            title_inches=lettering.inches(cells.caption.title, _TITLE_FONT * zoom),
            legend_inches=tuple(
                1.35 * text / _POINTS_PER_INCH * len(scale.caption.split("\n"))
                for scale in cells.scales
            ),
        )

    @property
    def are_named(self) -> bool:
        """False where the names would be too small to be read."""
        return self.font >= _SMALLEST_FONT

    @property
    def are_slanted(self) -> bool:
        """Slanted names of narrow cells would lie over each other: they stand upright."""
        return _are_slanted(self.map_side, max(len(self.names), 1))

    @property
    def zoom(self) -> float:
        """How much larger texts are than beside a small map."""
        return _zoom(self.map_side)

    @property
    def title_font(self) -> float:
        """The title's size in points."""
        return _TITLE_FONT * self.zoom

    @property
    def text_font(self) -> float:
        """The size of legends and notes in points."""
        return _TEXT_FONT * self.zoom

    @property
    def bottom(self) -> float:
        """The map's lower edge in inches: above the names below it, and a line."""
        return self.below + 0.35 * self.zoom

    @property
    def title_line(self) -> float:
        """Where the title stands."""
        return self.bottom + self.map_side + 0.12 * self.zoom

    @property
    def width(self) -> float:
        """The sheet's width in inches."""
        return self.left + max(self.map_side + self.right, self.title_inches + 0.15)

    @property
    def height(self) -> float:
        """The sheet's height in inches."""
        return self.title_line + 0.35 * self.zoom

    @property
    def legend_lines(self) -> list[tuple[float, float]]:
        """Lower end and length of each legend's bar, from above; its caption stands over it."""
        top, shares = self.bottom + self.map_side, (0.55, 0.45)
        if len(self.legend_inches) == 1:
            shares = (0.9, 0.0)
        places = []
        for share, caption in zip(shares, self.legend_inches, strict=False):
            length = share * self.map_side - caption - 0.25
            places.append((top - caption - 0.1 - length, length))
            top -= share * self.map_side
        return places

    @property
    def dots_per_inch(self) -> int:
        """The resolution of a PNG."""
        return _DOTS_PER_INCH if self.map_side <= _LARGEST_MAP else _DOTS_OF_LARGE_MAPS

    def box(self, left: float, low: float, w: float, h: float) -> tuple[float, float, float, float]:
        """(left, bottom, width, height) as shares of the sheet."""
        return left / self.width, low / self.height, w / self.width, h / self.height

    def point(self, left: float, low: float) -> tuple[float, float]:
        """A place as shares of the sheet."""
        return left / self.width, low / self.height


def _zoom(map_side: float) -> float:
    """How much larger texts are: a large picture is looked at from farther away."""
    return max(1.0, map_side / 12.0)


def _are_slanted(map_side: float, n_columns: int) -> bool:
    return map_side / n_columns > 0.3


def _show(axes: Any, cells: _Cells) -> None:
    """Colours the cells.

    The colours are looked up here: of a large map matplotlib would look up those of every pixel.
    """
    from matplotlib.colors import to_rgba

    values = np.nan_to_num(cells.values)
    colours = np.zeros((*values.shape, 4), dtype=np.uint8)
    for scale, places in ((cells.signed, ~cells.is_unsigned), (cells.unsigned, cells.is_unsigned)):
        if scale is not None:
            colours[places] = scale.mappable().to_rgba(values, bytes=True)[places]
    colours[cells.are_undefined] = 255 * np.array(to_rgba(_UNDEFINED))
    colours[np.eye(len(values), dtype=bool)] = 255 * np.array(to_rgba(_DIAGONAL))
    axes.imshow(colours, interpolation="nearest")


def _draw_legend(figure: Any, sheet: _Sheet, scale: _Scale, place: tuple[float, float]) -> None:
    low, length = place
    left = sheet.left + sheet.map_side + 0.25 * sheet.zoom
    axes = figure.add_axes(sheet.box(left, low, 0.18 * sheet.zoom, length))
    legend = figure.colorbar(scale.mappable(), cax=axes, ticks=list(scale.ticks))
    legend.ax.set_yticklabels(list(scale.ticks.values()), fontsize=sheet.text_font)
    legend.outline.set_visible(False)
    _write(figure, sheet, (left, low + length + 0.08), scale.caption, sheet.text_font)


def _write(figure: Any, sheet: _Sheet, place: tuple[float, float], text: str, font: float) -> None:
    """Writes from a place, in inches, to the right and upwards."""
    left, low = sheet.point(*place)
    figure.text(left, low, text, fontsize=font, ha="left", va="bottom", color=_INK)


def _explain_undefined(figure: Any, sheet: _Sheet) -> None:
    from matplotlib.patches import Patch

    patch = Patch(facecolor=_UNDEFINED, label=_UNDEFINED_NOTE)
    figure.legend(handles=[patch], loc="lower right", frameon=False, fontsize=sheet.text_font)


def _name_axes(axes: Any, sheet: _Sheet) -> None:
    """Writes the names as plain texts: a thousand ticks take half a minute."""
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks([])
    axes.set_yticks([])
    if not sheet.are_named:
        text = f"{len(sheet.names)} columns, too many for their names"
        axes.set_xlabel(text, fontsize=sheet.text_font)
        return
    plain = {"fontsize": sheet.font, "parse_math": False}  # a name may have a $
    slanted = {"rotation": 45, "ha": "right", "va": "top", "rotation_mode": "anchor"}
    upright = {"rotation": 90, "ha": "center", "va": "top"}
    gap = 0.06 * len(sheet.names) / sheet.map_side
    for i, name in enumerate(sheet.names):
        axes.text(-0.5 - gap, i, name, ha="right", va="center", **plain)
        turned = slanted if sheet.are_slanted else upright
        axes.text(i, len(sheet.names) - 0.5 + gap, name, **turned, **plain)


def _write_numbers(axes: Any, cells: _Cells) -> None:
    for (i, j), value in np.ndenumerate(cells.values):
        if i != j:
            scale = cells.unsigned if cells.is_unsigned[i, j] else cells.signed
            assert scale is not None, "each pair has a scale"
            text, colour = _number(value, scale.limit, is_signed=scale.least < 0.0)
            axes.text(j, i, text, ha="center", va="center", fontsize=8, color=colour)


def _number(value: float, limit: float = 1.0, *, is_signed: bool = True) -> tuple[str, str]:
    """A cell's text and its colour; what rounds to zero stays in the background.

    >>> _number(0.25), _number(-0.001), _number(0.25, is_signed=False)
    (('+0.25', '#333333'), ('0', '#9aa5b1'), ('0.25', '#333333'))
    """
    if np.isnan(value):
        return "×", _INK
    if abs(value) < 0.005:
        return "0", "#9aa5b1"
    text = f"{value:{'+' if is_signed else ''}.2f}".replace("-", "\N{MINUS SIGN}")
    return text, "white" if abs(value) > 0.6 * limit else _INK


def _mark_signs(axes: Any, cells: _Cells) -> None:
    """A stroke in each negative cell: in grey, and to some eyes, red and blue are one."""
    from matplotlib.collections import LineCollection

    scales = np.where(
        cells.is_unsigned,
        cells.unsigned.limit if cells.unsigned else 1.0,
        cells.signed.limit if cells.signed else 1.0,
    )
    with np.errstate(invalid="ignore"):
        rows, columns = np.nonzero(cells.values < -_WEAK * scales)
    strokes = [((j - 0.2, i), (j + 0.2, i)) for i, j in zip(rows, columns, strict=True)]
    dark = np.abs(cells.values[rows, columns]) > 0.6 * scales[rows, columns]
    colours = np.where(dark, "white", _INK).tolist()
    axes.add_collection(LineCollection(strokes, colors=colours, linewidths=0.8))
