"""Model files that say less: without what is known of their table, and without scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcvae import Synthesizer
from gcvae_cli.__main__ import main
from tests.gcvae_cli.small_table import N_ROWS
from tests.gcvae_cli.test_file_commands import refusal


def test_a_model_is_exported_as_a_minimal_file_that_gives_flags_alone(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, minimal, flags = folder / "model.gcvae", tmp_path / "m.gcvae", tmp_path / "flags.csv"
    assert main(["export", str(model), "-o", str(minimal), "--minimal", "--scoring", "flag"]) == 0
    exported = Synthesizer.load(minimal)
    assert (exported.training_record["is_minimal"], exported.scoring) == (True, "flag")
    asked = ["score", str(minimal), str(folder / "table.csv"), "--draws", "3"]
    assert main([*asked, "-o", str(flags)]) == 0
    assert flags.read_text().splitlines()[0] == "is_rare"
    capsys.readouterr()
    assert main([*asked, "-o", str(flags), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["totals"]["rows"] == N_ROWS
    assert "is_rare tells whether" in told["notes"][0]
    code, error = refusal([*asked, "--measure", "pmf", "-o", str(flags)], capsys)
    assert (code, "only flags rare rows" in error) == (2, True)
    looser = tmp_path / "looser.gcvae"
    asked = ["export", str(minimal), "-o", str(looser), "--scoring", "full"]
    code, error = refusal(asked, capsys)
    assert (code, "scoring is 'flag' and cannot be changed" in error) == (2, True), (code, error)
    assert not looser.exists()
    code, error = refusal(["export", str(model), "-o", str(minimal), "--scoring", "on"], capsys)
    assert (code, "full, flag, off" in error) == (2, True)
