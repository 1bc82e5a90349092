"""The short form of `make test-fuzz`: hostile inputs of each kind, and what was found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.abuse import inputs
from tests.abuse.batches import read_batch
from tests.abuse.findings import Findings
from tests.lengths import first_of
from tests.wordings import refuses

ROOT = Path(__file__).parents[2]
KEPT = Path(inputs.__file__).parent / "kept"


@pytest.mark.parametrize("name", inputs.SUBJECTS)
def test_hostile_inputs_are_read_or_refused_and_leave_nothing(name: str, tmp_path: Path) -> None:
    findings = Findings()
    inputs.model()  # before the process is forked
    n_inputs = 10 if name == "artifact" else 40
    read_batch(name, 7, n_inputs, tmp_path, findings)
    assert findings.failures == {}
    assert findings.n_inputs >= n_inputs / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", first_of("parquet", "json"))
def test_inputs_that_coverage_guides_are_read_or_refused(name: str, tmp_path: Path) -> None:
    """Of `make test-guided`; atheris ends its process, so it has one of its own."""
    pytest.importorskip("atheris", reason="atheris has wheels for Linux alone")
    command = [sys.executable, "-m", "tests.abuse.guided", name, "--inputs", "150"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Done 150 runs" in done.stderr


def test_what_hostile_inputs_are_made_of_is_good() -> None:
    inputs.read_schema(inputs.SCHEMA)
    inputs.read_csv(inputs.GOOD_CSV.encode())
    for file in inputs.parquets()[:-1]:
        inputs.read_csv(file)
    for number, (_, document) in enumerate(inputs.BODIES):
        inputs.read_body(bytes([number]) + json.dumps(document).encode())
    inputs.read_model(inputs.model())


def test_a_rule_without_an_expression_is_refused_with_its_place() -> None:
    document = inputs.SCHEMA | {"rules": [{"kind": {"a": 1}}]}
    with refuses(inputs.REFUSALS):
        inputs.read_schema(document)


def test_a_ragged_row_that_is_not_utf_8_is_refused_in_silence(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with refuses(inputs.REFUSALS):
        inputs.read_csv(b"a,b\n1,2\n\xff\xfe,3,4\n5,6\n")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("kept", sorted(KEPT.iterdir()), ids=lambda path: path.name)
def test_what_once_found_something_is_refused(kept: Path) -> None:
    with pytest.raises(inputs.REFUSALS):
        inputs.SUBJECTS[kept.name.split("-", 1)[0]].read(kept.read_bytes())
