"""Where new users make errors: files as they bring them, beside two services."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from gcvae_client import Client

N_ROWS = 60
SCHEMAS = {
    "misnamed.json": '{"columns": [{"name": "mkae", "kind": "categorical"}]}',
    "miskind.json": '{"columns": [{"name": "make", "kind": "continuous"}]}',
    "foreign.json": '{"columns": [{"name": "make", "kind": "nominal"}]}',
    "number.json": '{"columns": [{"name": "price", "kind": "continuous"}]}',
    "date.json": '{"columns": [{"name": "bought", "kind": "datetime"}]}',
    "never.json": '{"rules": [{"rule": "price <= doors", "keep": "hard"}], "find_rules": true}',
}


@dataclass(frozen=True)
class Place:
    """Where the errors are made: a folder of tables, and two services.

    Attributes:
        names: What stands in braces in the commands: addresses and ids.
        open: A client of the service without keys.
        waiting: One of the service with keys, where jobs wait.
    """

    folder: Path
    names: dict[str, str]
    open: Client
    waiting: Client

    def filled(self, text: str) -> str:
        """The text with addresses and ids in the place of their letters."""
        for letter, name in self.names.items():
            text = text.replace(f"{{{letter}}}", name)
        return text


def cars() -> pd.DataFrame:
    """Levels, a number, few whole numbers and a date."""
    generator = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "make": generator.choice(["audi", "bmw", "fiat"], N_ROWS),
            "price": generator.gamma(5.0, 4000.0, N_ROWS).round(2),
            "doors": generator.integers(2, 6, N_ROWS),
            "bought": pd.date_range("2020-01-01", periods=N_ROWS).strftime("%Y-%m-%d"),
        }
    )


def write_first_tables(folder: Path) -> None:
    """Writes `cars.csv`, what is wrong with others like it, and schemas."""
    table = cars()
    text = table.to_csv(index=False)
    lines = text.splitlines()
    texts = {
        "cars.csv": text,
        "empty.csv": "",
        "header.csv": f"{lines[0]}\n",
        "ragged.csv": "\n".join([*lines[:5], "audi,1", *lines[5:], ""]),
        "twice.csv": text.replace("make,price,doors", "make,price,price"),
        "one_row.csv": "\n".join([*lines[:2], ""]),
        "cheap.csv": "\n".join([*lines[:7], "audi,cheap,4,2020-01-01", *lines[7:], ""]),
        "renamed.csv": text.replace("price", "prise"),
        "large.csv": text + "\n".join([*lines[1:] * 150, ""]),
        "text.gcvae": "a model",
        **SCHEMAS,
    }
    for name, content in texts.items():
        (folder / name).write_text(content, encoding="utf-8")
    (folder / "latin.csv").write_bytes(text.replace("fiat", "citroën").encode("cp1252"))
    (folder / "book.xlsx").write_bytes(b"PK\x03\x04" + bytes(22) + b"[Content_Types].xml")
    table.assign(colour="red").to_csv(folder / "wider.csv", index=False)
    dates = [f"the {day}" for day in table["bought"]]
    table.assign(bought=dates).to_csv(folder / "dates.csv", index=False)
    table.assign(no=[f"c{i:05d}" for i in range(N_ROWS)]).to_csv(folder / "keys.csv", index=False)
