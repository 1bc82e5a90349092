"""The short form of `python -m benchmarks.scale`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import scale

_ROOT = Path(__file__).parents[3]


def test_the_table_is_the_same_in_every_format_and_has_columns_of_every_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "BLOCK_ROWS", 400)
    for name in ("table.csv", "table.parquet"):
        scale.write_table(tmp_path / name, 1_000)
    read = pd.read_csv(tmp_path / "table.csv", dtype={"mail": str}, keep_default_na=False)
    typed = pd.read_parquet(tmp_path / "table.parquet")
    assert (
        read["customer"].tolist()
        == typed["customer"].tolist()
        == list(range(10_000_000, 10_001_000))
    )
    assert read["town"].tolist() == typed["town"].tolist()
    assert len(typed.columns) == 20


def test_one_command_measures_time_and_memory_by_part(tmp_path: Path) -> None:
    output = tmp_path / "scale.json"
    command = [sys.executable, "-m", "benchmarks.scale", "--rows", "300"]
    done = subprocess.run(
        [*command, "--scratch", str(tmp_path), "-o", str(output)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    tables = json.loads(output.read_text())["tables"]
    [table] = tables
    assert (table["rows"], table["columns"]) == (300, 20)
    assert set(table["seconds"]) == {"ingest", "encode", "epoch", "finish"}
    assert all(n > 100 << 20 for n in table["anonymous_bytes"].values())
    assert max(table["resident_bytes"].values()) < scale.LIMIT_BYTES
    assert table["files_bytes"] > 0
    assert "300 rows x 20" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["scale.json"]


def test_the_page_shows_what_was_measured_last() -> None:
    newest = max((_ROOT / "benchmarks" / "results").glob("scale-*.json"))
    tables = json.loads(newest.read_text())["tables"]
    assert [table["rows"] for table in tables] == list(scale.ROWS)
    assert all(max(t["resident_bytes"].values()) < scale.LIMIT_BYTES for t in tables)
    assert scale.page(tables) in (_ROOT / "docs" / "scale.md").read_text()
