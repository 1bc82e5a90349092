"""The picture of real against synthetic."""

from __future__ import annotations

import io
import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Text

from gcvae import infer_schema, parse_table
from gcvae.figures.figures import save_figure
from gcvae.figures.fonts import FontWarning
from gcvae.schema.columns import TableSchema
from gcvae_cli.client.comparison import draw_comparison

NOWHERE = chr(0x10F0F0)  # in a private area: no font has it
NAMES = ["price", f"{NOWHERE}\n", r"$\frac$", "größe"]


def test_names_and_levels_of_any_script_are_drawn() -> None:
    frame = pd.DataFrame(dict.fromkeys(NAMES, NAMES * 3)).astype(object)
    schema = infer_schema(frame).schema
    picture = io.BytesIO()
    table = parse_table(frame, schema)
    with pytest.warns(FontWarning, match=r"code points such as \\U0010f0f0"):
        draw_comparison(table, table, schema, picture)
    assert picture.getvalue().startswith(b"\x89PNG")


def test_times_of_day_are_drawn_as_such() -> None:
    times = [f"{hour:02d}:{hour:02d}:07" for hour in range(24)]
    frame = pd.DataFrame({"time": times * 3})
    schema = infer_schema(frame).schema
    table = parse_table(frame, schema)
    picture = io.BytesIO()
    draw_comparison(table, table, schema, picture)
    assert picture.getvalue().startswith(b"\x89PNG")


LONG = [
    "Gesamtbetrag der Bestellung einschließlich Umsatzsteuer (EUR)",
    "客户所在城市的行政区划代码和邮政编码的完整名称以及备注信息和联系方式说明",
    "إجمالي مبلغ الطلب بما في ذلك ضريبة القيمة المضافة والشحن",
    44 * "W",
    "Ελληνικά: το πλήρες όνομα της περιοχής του πελάτη",
]


def long_table() -> tuple[pd.DataFrame, TableSchema]:
    """Columns and levels with long names, blanks in most, and the schema."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=400)
    frame = pd.DataFrame(
        {
            LONG[0]: base.round(3),
            LONG[1]: np.where(base > 0, LONG[1], rng.choice(LONG, 400)),
            LONG[2]: (base + rng.normal(size=400)).round(2),
            LONG[3]: rng.choice([False, True], 400),
            LONG[4]: rng.integers(0, 9, 400),
        }
    ).astype(object)
    frame = frame.mask(rng.random(frame.shape) < 0.1, None)
    schema = infer_schema(frame).schema
    return parse_table(frame, schema), schema


def labels_out_of_view(axes: Axes) -> set[Text]:
    """Labels of ticks beyond the ends of an axis: they are there, and not drawn."""
    low, high = axes.get_xlim()
    labels = zip(axes.get_xticklabels(), axes.get_xticks(), strict=True)
    return {label for label, place in labels if not low <= place <= high}


@pytest.mark.filterwarnings("ignore::gcvae.figures.fonts.FontWarning")
def test_no_text_leaves_the_sheet_or_lies_on_another(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes: list[tuple[str, Any]] = []

    def measure_and_save(figure: Any, target: Any, format: str, dpi: int) -> None:
        figure.canvas.draw()
        renderer = figure.canvas.get_renderer()
        unseen = {label for axes in figure.findobj(Axes) for label in labels_out_of_view(axes)}
        for text in figure.findobj(Text):
            if text.get_visible() and text.get_text().strip() and text not in unseen:
                box, sheet = text.get_window_extent(renderer), figure.bbox
                said = f"{text.get_text()!r} at {box} leaves the sheet {sheet}"
                assert box.x0 > -1, said
                assert box.x1 < sheet.x1 + 1, said
                assert box.y0 > -1, said
                assert box.y1 < sheet.y1 + 1, said
                if text.get_rotation() == 0.0:
                    boxes.append((text.get_text(), box))
        save_figure(figure, target, format, dpi)

    monkeypatch.setattr("gcvae_cli.client.comparison.save_figure", measure_and_save)
    table, schema = long_table()
    draw_comparison(table, table.sample(frac=1.0, random_state=1), schema, io.BytesIO())
    assert len(boxes) > 20
    for (one, a), (other, b) in combinations(boxes, 2):
        overlap = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert min(overlap) < 1.5, f"{one!r} lies on {other!r}"


@pytest.mark.parametrize("names", [LONG[:1], LONG[3:4], LONG[1:3]])
def test_tables_of_one_column_and_of_two_are_compared(names: list[str]) -> None:
    table, schema = long_table()
    part = TableSchema(tuple(column for column in schema if column.name in names))
    picture = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FontWarning)
        draw_comparison(table[names], table[names], part, picture)
    assert picture.getvalue().startswith(b"\x89PNG")
