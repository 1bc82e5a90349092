"""Typed files and foreign names through the commands."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from gcvae_cli.__main__ import main

FOREIGN = chr(0x10F0F0)  # in a private area: no font has it


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of a foreign name and a few types, some cells null, and a model of it."""
    folder = tmp_path_factory.mktemp("typed")
    rng = np.random.default_rng(0)
    gone = rng.random(80) < 0.2
    seconds = rng.integers(0, 86_400, 80)
    day = datetime.date(2024, 1, 1)
    table = {
        "at": pa.array(seconds * 10**9, mask=gone).cast(pa.timestamp("us", "America/Lima")),
        "day": [day + datetime.timedelta(days=int(n)) for n in rng.integers(0, 99, 80)],
        "clock": pa.array(seconds.astype("int32"), mask=gone).cast(pa.time32("s")),
        f"{FOREIGN}": pa.array(seconds, mask=gone).cast(pa.duration("s")),
        "number": rng.integers(0, 99, 80).astype("int16"),
    }
    parquet.write_table(pa.table(table), folder / "table.parquet")
    trained = ["train", str(folder / "table.parquet"), "-o", str(folder / "model.gcvae")]
    assert main([*trained, "--preset", "fast", "--set", "max_steps=5"]) == 0
    return folder


def test_samples_and_completed_tables_have_the_types_of_the_table(
    folder: Path, tmp_path: Path
) -> None:
    table, model = str(folder / "table.parquet"), str(folder / "model.gcvae")
    assert main(["sample", model, "--rows", "9", "-o", str(tmp_path / "drawn.parquet")]) == 0
    assert main(["impute", model, table, "-o", str(tmp_path / "completed.parquet")]) == 0
    assert main(["score", model, table, "-o", str(tmp_path / "scores.csv"), "--draws", "5"]) == 0
    wanted = parquet.read_schema(table).types
    assert parquet.read_schema(tmp_path / "drawn.parquet").types == wanted
    assert parquet.read_schema(tmp_path / "completed.parquet").types == wanted


def test_a_bad_cell_of_a_file_is_named_by_its_row(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = parquet.read_table(folder / "table.parquet")
    long = pa.concat_tables([table] * 60)
    numbers = pa.array(["1"] * 4500 + ["one"] + ["1"] * (len(long) - 4501))
    place = long.column_names.index("number")
    parquet.write_table(long.set_column(place, "number", numbers), tmp_path / "bad.parquet")
    asked = ["score", str(folder / "model.gcvae"), str(tmp_path / "bad.parquet")]
    assert main([*asked, "-o", str(tmp_path / "scores.csv"), "--draws", "1"]) == 1
    assert "row 4500, column 'number': the kind is integer, but the cell is 'one'" in (
        capsys.readouterr().err
    )
    assert not (tmp_path / "scores.csv").exists()


def test_a_name_that_no_font_has_is_told_in_a_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["dependencies", str(folder / "model.gcvae"), "--kind", "data"]
    capsys.readouterr()
    assert main([*asked, "-o", str(tmp_path / "map.png")]) == 0
    assert capsys.readouterr().err.startswith("gcvae: warning: no font of this machine has")
    assert main([*asked, "-o", str(tmp_path / "map.svg")]) == 0
    assert capsys.readouterr().err == ""
    assert f">{FOREIGN}</text>" in (tmp_path / "map.svg").read_text()
