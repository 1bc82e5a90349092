"""The picture of real against synthetic."""

from __future__ import annotations

import io

import pandas as pd

from gcvae import infer_schema, parse_table
from gcvae_cli.comparison import draw_comparison

NAMES = ["价格", "🙂\n", r"$\frac$", "größe"]


def test_names_and_levels_of_any_script_are_drawn_without_a_warning() -> None:
    frame = pd.DataFrame(dict.fromkeys(NAMES, NAMES * 3)).astype(object)
    schema = infer_schema(frame).schema
    picture = io.BytesIO()
    table = parse_table(frame, schema)
    draw_comparison(table, table, schema, picture)
    assert picture.getvalue().startswith(b"\x89PNG")
