"""The commands on a file whose numbers are written as people write them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gcvae_cli.__main__ import main

TABLE = "price;n\n" + "".join(
    f"{n % 9 + 1}.{n * 37 % 1000:03d},{n % 100:02d} €;{n % 30}\n" for n in range(200)
)


def test_a_file_is_described_learned_and_drawn_as_it_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, model, output = (str(tmp_path / name) for name in ("t.csv", "m.gcvae", "rows.csv"))
    Path(table).write_text(TABLE)
    assert main(["schema", table]) == 0
    document = json.loads(capsys.readouterr().out)
    number_format = {"decimal": ",", "thousands": ".", "suffix": " €"}
    assert document["columns"][0]["number_format"] == number_format
    assert document["separator"] == ";"
    quick = ["--device", "cpu", "--set", "max_steps=20", "--set", "evaluate_every_steps=10"]
    assert main(["train", table, "-o", model, *quick]) == 0
    given = ["--given", '{"price": {"min": "3.000,50 €"}}', "--seed", "1"]
    assert main(["sample", model, "--rows", "30", *given, "-o", output]) == 0
    header, *rows = Path(output).read_text().splitlines()
    assert header == "price;n"
    assert all(re.fullmatch(r"[3-9]\.\d{3},\d\d €;\d+", row) for row in rows)
    blank = "price;n\n;7\n1.000,00 €;\n"
    (tmp_path / "blank.csv").write_text(blank)
    assert main(["impute", model, str(tmp_path / "blank.csv"), "-o", output, "--seed", "1"]) == 0
    _, first, second = Path(output).read_text().splitlines()
    assert re.fullmatch(r"\d{1,3}(\.\d{3})*,\d\d €;7", first)
    assert re.fullmatch(r"1\.000,00 €;\d+", second)
