"""A table with a column of each kind that is counted, and the schema that declares it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

N_ROWS = 600


def declared_frame(n_rows: int = N_ROWS, seed: int = 0) -> pd.DataFrame:
    """Cells as text."""
    random = np.random.default_rng(seed)
    group = random.integers(0, 3, n_rows)
    height = np.round(random.normal(165 + 8 * group, 6), 1).clip(101, 249)
    frame = pd.DataFrame(
        {
            "größe": [f"{x:.1f}" for x in height],
            "группа": np.array(["а", "б", "в"])[group],
            "years": random.integers(0, 101, n_rows).astype(str),
            "seit": [f"20{y:02d}-0{m}-15" for y, m in zip(
                random.integers(10, 24, n_rows), random.integers(1, 10, n_rows), strict=True)],
            "aktiv": np.where(random.random(n_rows) < 0.3, "ja", "nein"),
        }
    )  # fmt: skip
    frame.loc[random.random(n_rows) < 0.1, "größe"] = ""
    return frame


def declared_document() -> dict[str, Any]:
    """In another order than the table's."""
    never = {"allowed": False}
    return {
        "columns": [
            {"name": "группа", "kind": "categorical", "levels": ["а", "б", "в"], "missing": never},
            {"name": "aktiv", "kind": "boolean", "levels": ["nein", "ja"], "missing": never},
            {
                "name": "größe",
                "kind": "continuous",
                "minimum": 100,
                "maximum": 250,
                "decimals": 1,
                "missing": {"allowed": True},
            },
            {"name": "years", "kind": "integer", "minimum": 0, "maximum": 110, "missing": never},
            {
                "name": "seit",
                "kind": "datetime",
                "datetime_format": "%Y-%m-%d",
                "minimum": "2010-01-01",
                "maximum": "2025-12-31",
                "missing": never,
            },
        ]
    }


def document_without(column: str, *members: str) -> dict[str, Any]:
    """The document without some members of one column."""
    columns = [
        {k: v for k, v in c.items() if c["name"] != column or k not in members}
        for c in declared_document()["columns"]
    ]
    return {"columns": columns}
