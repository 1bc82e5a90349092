"""The short form of `make test-fuzz`: hostile inputs of each kind, and what was found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.abuse import inputs
from tests.abuse.batches import read_batch
from tests.abuse.findings import Findings

KEPT = Path(inputs.__file__).parent / "kept"


@pytest.mark.parametrize("name", inputs.SUBJECTS)
def test_hostile_inputs_are_read_or_refused_and_leave_nothing(name: str, tmp_path: Path) -> None:
    findings = Findings()
    inputs.model()  # before the process is forked
    n_inputs = 10 if name == "artifact" else 40
    read_batch(name, 7, n_inputs, tmp_path, findings)
    assert findings.failures == {}
    assert findings.n_inputs >= n_inputs / 2


def test_what_hostile_inputs_are_made_of_is_good() -> None:
    inputs.read_schema(inputs._SCHEMA)
    inputs.read_csv(inputs._GOOD_CSV.encode())
    for file in inputs.parquets()[:-1]:
        inputs.read_csv(file)
    for number, (_, document) in enumerate(inputs._BODIES):
        inputs.read_body(bytes([number]) + json.dumps(document).encode())
    inputs.read_model(inputs.model())


@pytest.mark.parametrize("member", ["constraints", "rules"])
def test_a_kind_that_is_no_word_is_refused_with_its_place(member: str) -> None:
    document = inputs._SCHEMA | {member: [{"kind": {"a": 1}}]}
    with pytest.raises(inputs.REFUSALS, match=f"/{member}/0.*unknown kind"):
        inputs.read_schema(document)


def test_a_ragged_row_that_is_not_utf_8_is_refused_in_silence(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(inputs.REFUSALS, match="UTF-8"):
        inputs.read_csv(b"a,b\n1,2\n\xff\xfe,3,4\n5,6\n")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("kept", sorted(KEPT.iterdir()), ids=lambda path: path.name)
def test_what_once_found_something_is_refused(kept: Path) -> None:
    with pytest.raises(inputs.REFUSALS):
        inputs.SUBJECTS[kept.name.split("-", 1)[0]].read(kept.read_bytes())
