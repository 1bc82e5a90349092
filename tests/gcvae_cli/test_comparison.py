"""The picture of real against synthetic."""

from __future__ import annotations

import io

import pandas as pd
import pytest

from gcvae import infer_schema, parse_table
from gcvae.glyphs import GlyphWarning
from gcvae_cli.comparison import draw_comparison

NOWHERE = chr(0x10F0F0)  # in a private area: no font has it
NAMES = ["price", f"{NOWHERE}\n", r"$\frac$", "größe"]


def test_names_and_levels_of_any_script_are_drawn() -> None:
    frame = pd.DataFrame(dict.fromkeys(NAMES, NAMES * 3)).astype(object)
    schema = infer_schema(frame).schema
    picture = io.BytesIO()
    table = parse_table(frame, schema)
    with pytest.warns(GlyphWarning, match=r"code points such as \\U0010f0f0"):
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
