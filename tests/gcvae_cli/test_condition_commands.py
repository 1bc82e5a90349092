"""`gcvae sample` under conditions and `gcvae impute`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer, format_table
from gcvae_cli.__main__ import main


def test_sample_under_a_condition_gives_the_library_s_rows(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"colour": "red", "size": {"min": 0}}
    (tmp_path / "given.json").write_text(json.dumps(given))
    output = tmp_path / "rows.csv"
    asked = ["sample", str(folder / "model.gcvae"), "--rows", "60", "--seed", "4", "--json"]
    assert main([*asked, "--given", f"@{tmp_path}/given.json", "-o", str(output)]) == 0
    answer = json.loads(capsys.readouterr().out)
    synthesizer = Synthesizer.load(folder / "model.gcvae")
    sampler = synthesizer.sampler(4, given=given)
    assert answer["probability"] == sampler.summary(60)["probability"]
    expected = format_table(pd.concat(sampler.blocks(60)), synthesizer.schema)
    rows = pd.read_csv(output, dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(rows, expected.reset_index(drop=True), check_dtype=False)


def test_a_distribution_and_rows_of_known_cells_are_taken(folder: Path, tmp_path: Path) -> None:
    count = pd.read_csv(folder / "table.csv", dtype=str)["count"][0]
    (tmp_path / "known.csv").write_text(f"colour,count\nred,\n,{count}\nblue,\n")
    model = str(folder / "model.gcvae")
    output = tmp_path / "rows.csv"
    known = ["sample", model, "--given-rows", str(tmp_path / "known.csv"), "-o", str(output)]
    assert main(known) == 0
    rows = pd.read_csv(output, dtype=str)
    assert (rows["colour"][0], rows["count"][1], rows["colour"][2]) == ("red", count, "blue")
    shares = '{"colour": {"red": 0.25, "blue": 0.75}}'
    drawn = ["sample", model, "--rows", "200", "--distribution", shares, "-o", str(output)]
    assert main(drawn) == 0
    assert pd.read_csv(output, dtype=str)["colour"].value_counts()["red"] in (49, 50, 51)


def test_impute_fills_blanks_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    cells = pd.read_csv(folder / "table.csv", dtype=str, keep_default_na=False).head(30)
    blank = np.arange(30) % 3 == 0
    cells.loc[blank, "colour"] = ""
    cells.to_csv(tmp_path / "blanks.csv", index=False)
    output = tmp_path / "completed.csv"
    asked = ["impute", str(folder / "model.gcvae"), str(tmp_path / "blanks.csv")]
    assert main([*asked, "-o", str(output), "--seed", "2"]) == 0
    filled = pd.read_csv(output, dtype=str, keep_default_na=False)
    assert set(filled["colour"][blank]) <= {"red", "blue"}
    known = cells.drop(columns=["colour", "grade"])
    pd.testing.assert_frame_equal(filled[known.columns], known)
    assert (filled["colour"][~blank] == cells["colour"][~blank]).all()
    assert main([*asked, "-o", str(tmp_path / "draws.parquet"), "--draws", "2"]) == 0
    assert pd.read_parquet(tmp_path / "draws.parquet")["draw"].tolist() == [1, 2] * 30


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ([], 2, "--rows"),
        (["--rows", "5", "--given", "{"], 2, "--given: not valid JSON"),
        (["--rows", "5", "--given", "[1]"], 2, "is not a JSON object"),
        (["--rows", "5", "--given", '{"size": NaN}'], 2, "NaN is not a valid value"),
        (["--rows", "5", "--given", '{"size": 1, "size": 2}'], 2, "'size' occurs twice"),
        (["--rows", "5", "--given", '{"colour": "pink"}'], 1, "no level"),
    ],
)
def test_a_condition_that_can_not_be_met_is_told(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    told: str,
) -> None:
    output = ["-o", str(tmp_path / "rows.csv")]
    assert main(["sample", str(folder / "model.gcvae"), *arguments, *output]) == code
    assert told in capsys.readouterr().err
    assert not (tmp_path / "rows.csv").exists()
