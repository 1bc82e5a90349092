"""Commands that ask a service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcvae_cli.__main__ import main
from tests.fitted.models import path_of
from tests.running_service import running, settings_in

STORED = path_of("paper-gcvae")


@pytest.mark.slow
def test_a_model_file_is_brought_into_a_service(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(settings_in(tmp_path)) as service:
        assert main(["import", str(STORED), "--server", service.url, "--name", "orders"]) == 0
        model = service.http.get(f"/v1/models/{capsys.readouterr().out.strip()}").json()
        assert (model["name"], model["status"]) == ("orders", "ready")
        assert main(["import", str(STORED), "--server", service.url, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["name"] == STORED.stem
        cut = tmp_path / "cut.gcvae"
        cut.write_bytes(STORED.read_bytes()[:-1])
        assert main(["import", str(cut), "--server", service.url]) == 1
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert "truncated" in told


@pytest.mark.slow
def test_a_service_that_does_not_answer_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(STORED), "--server", "http://127.0.0.1:1"]) == 1
    assert "http://127.0.0.1:1 does not respond" in capsys.readouterr().err
