"""Commands that look after keys, and the service that they close."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcvae_cli.__main__ import main
from tests.gcvae_cli.test_client_commands import STORED
from tests.running_service import running, settings_in


def _created(capsys: pytest.CaptureFixture[str], folder: Path, *more: str) -> dict[str, str]:
    where = ["--data-dir", str(folder), "--json"]
    assert main(["keys", "create", "--workspace", "acme", *where, *more]) == 0
    document: dict[str, str] = json.loads(capsys.readouterr().out)
    return document


def test_a_key_made_in_an_empty_folder_opens_the_service_that_starts_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = _created(capsys, tmp_path / "data", "--name", "nightly", "--days", "30")
    assert key["name"] == "nightly"
    assert key["expires_at"] > key["created_at"]
    file = tmp_path / "key"
    file.write_text(key["key"] + "\n")
    with running(settings_in(tmp_path / "data")) as service:
        server = ["--server", service.url]
        assert main(["import", str(STORED), *server]) == 1
        assert "the request has no API key" in capsys.readouterr().err
        assert main(["import", str(STORED), *server, "--key-file", str(file)]) == 0
        model_id = capsys.readouterr().out.strip()
        header = {"Authorization": f"Bearer {key['key']}"}
        assert service.http.get(f"/v1/models/{model_id}", headers=header).status_code == 200


def test_a_key_is_listed_rotated_and_revoked_and_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--data-dir", str(tmp_path)]
    key = _created(capsys, tmp_path)
    assert main(["keys", "rotate", key["id"], *where]) == 0
    written = capsys.readouterr().out.strip()
    assert written.startswith("gcv_")
    assert main(["keys", "list", *where]) == 0
    listed = capsys.readouterr().out
    old, new = listed.splitlines()
    assert old.endswith("revoked")
    assert "never used" in new
    assert written.split("_", 2)[2] not in listed
    assert main(["keys", "revoke", f"key_{written.split('_')[1]}", *where, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["revoked_at"] is not None
    assert main(["audit", "export", *where]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["action"] for line in lines] == ["keys create", "keys rotate", "keys revoke"]
    assert {line["actor"] for line in lines} == {"operator"}
    assert main(["audit", "verify", *where]) == 0
    assert f"3 lines are unchanged; the last digest is {lines[-1]['digest']}" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["create", "--workspace", "a", "--scopes", "read,all"], "of read, write, admin"),
        (["create", "--workspace", " "], "--workspace is ' '"),
        (["create", "--workspace", "a\nb"], "--workspace is"),
        (["create", "--workspace", "a", "--days", "0"], "--days is 0"),
        (["create", "--workspace", "a", "--from-file", "none"], "--from-file none"),
        (["list"], "contains no data of a service"),
        (["revoke", "key_none"], "contains no data of a service"),
    ],
)
def test_wrong_usage_of_keys_is_named_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    folder = tmp_path / "data"
    assert main(["keys", *words, "--data-dir", str(folder)]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert not folder.exists()
