"""The commands that draw maps: of dependencies, at a row, of the latent space."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcvae import Synthesizer
from gcvae_cli.__main__ import main
from tests.gcvae_cli.small_table import small_table
from tests.gcvae_cli.test_file_commands import refusal


@pytest.mark.parametrize(
    ("name", "beginning"),
    [("map.png", b"\x89PNG"), ("map.svg", b"<?xml"), ("map.json", b"{"), ("map.csv", b",size")],
)
def test_dependencies_are_drawn_or_written_by_the_ending(
    folder: Path, tmp_path: Path, name: str, beginning: bytes
) -> None:
    asked = ["dependencies", str(folder / "model.gcvae"), "--kind", "data"]
    assert main([*asked, "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_bytes().startswith(beginning)


def test_a_map_is_written_in_the_order_of_another_kind(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "map.json"
    asked = ["dependencies", str(folder / "model.gcvae"), "-o", str(output), "--order", "total"]
    assert main(asked) == 0
    synthesizer = Synthesizer.load(folder / "model.gcvae")
    order = synthesizer.dependencies("total").order
    assert json.loads(output.read_text()) == synthesizer.dependencies("expected").to_json(order)


def test_a_map_at_a_row_is_local_and_the_librarys(folder: Path, tmp_path: Path) -> None:
    output, row = tmp_path / "map.json", {"size": 9.5, "colour": "blue"}
    asked = ["dependencies", str(folder / "model.gcvae"), "-o", str(output), "--seed", "4"]
    assert main([*asked, "--row", json.dumps(row)]) == 0
    synthesizer = Synthesizer.load(folder / "model.gcvae")
    found = json.loads(output.read_text())
    assert found == synthesizer.dependencies("local", seed=4, row=row).to_json()
    assert main([*asked, "--z", json.dumps([0.0] * 8)]) == 0
    found = json.loads(output.read_text())
    assert found == synthesizer.dependencies("local", seed=4, z=[0.0] * 8).to_json()
    assert main([*asked, "--kind", "difference"]) == 0
    found = json.loads(output.read_text())
    assert found == synthesizer.dependencies("difference", seed=4).to_json()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--row", "{"], "--row is not valid JSON"),
        (["--row", "[1]"], "--row is [1]; write an object"),
        (["--row", '{"size": 1, "size": 2}'], "the key 'size' occurs twice"),
        (["--row", '{"size": NaN}'], "NaN is not a valid value"),
        (["--z", "3"], "--z is 3; write a list"),
        (["--kind", "local"], "either a row or a z"),
        (["--kind", "total", "--row", "{}"], "no row and no z"),
    ],
)
def test_a_place_that_can_not_be_read_is_wrong_usage(
    folder: Path, capsys: pytest.CaptureFixture[str], given: list[str], message: str
) -> None:
    asked = ["dependencies", str(folder / "model.gcvae"), "-o", "-", *given]
    code, error = refusal(asked, capsys)
    assert code == 2
    assert message in error


def test_a_name_that_no_font_has_is_told_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = chr(0x10F0F0)  # in a private area: no font has it
    table, model = str(tmp_path / "table.csv"), str(tmp_path / "m.gcvae")
    small_table().rename(columns={"grade": foreign}).to_csv(table, index=False)
    assert main(["train", table, "-o", model, "--preset", "fast", "--set", "max_steps=5"]) == 0
    asked = ["dependencies", model, "--kind", "data"]
    capsys.readouterr()
    assert main([*asked, "-o", str(tmp_path / "map.png")]) == 0
    assert capsys.readouterr().err.startswith("gcvae: warning: no font of this machine has")
    assert main([*asked, "-o", str(tmp_path / "map.svg")]) == 0
    assert capsys.readouterr().err == ""
    assert f">{foreign}</text>" in (tmp_path / "map.svg").read_text()
