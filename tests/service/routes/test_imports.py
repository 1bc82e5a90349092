"""Imports: a model file from elsewhere is tried out, and then is a model like any other."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
import torch

from catalog.database.tables import ModelRow
from gcvae.artifact.file import pack_tensors, read_artifact, unpack_tensors
from service.http.uploads import Upload
from service.reservations import collect_garbage
from service.routes.imports import add_model
from tests.fitted.models import path_of
from tests.running_service import Running, assert_problem, inline_pids, library, work

STORED = path_of("paper-gcvae")
BARE = {"Content-Type": "application/octet-stream"}


@pytest.fixture(scope="session")
def file(service: Running, model: dict[str, Any]) -> bytes:
    """The artifact of a model that was trained elsewhere."""
    return service.http.get(f"/v1/models/{model['id']}/artifact").content


@pytest.fixture
def imported(service: Running, file: bytes) -> dict[str, Any]:
    """That model, brought in."""
    response = service.http.post("/v1/models/import?name=cars", content=file, headers=BARE)
    assert response.status_code == 201, response.text
    return dict(response.json())


def test_an_imported_model_is_ready_and_says_what_its_file_says(
    service: Running, model: dict[str, Any], imported: dict[str, Any], file: bytes
) -> None:
    assert imported["id"] != model["id"]
    assert (imported["status"], imported["name"]) == ("ready", "cars")
    assert (imported["dataset_id"], imported["job_id"]) == (None, None)
    for member in ("schema", "record", "bound_held_out", "artifact_sha256", "artifact_bytes"):
        assert imported[member] == model[member], member
    assert imported["artifact_sha256"] == hashlib.sha256(file).hexdigest()
    assert imported["training"].items() >= {"preset": "paper-vae", "max_steps": 20}.items()
    assert service.http.get(f"/v1/models/{imported['id']}").json() == imported
    listed = service.http.get("/v1/models", params={"status": "ready", "limit": 200}).json()
    assert imported in listed["items"]
    assert service.http.get(f"/v1/models/{imported['id']}/artifact").content == file


def test_a_file_is_read_whatever_its_folder_is_called(service: Running) -> None:
    files = {"file": (f"../../etc/{STORED.name}", STORED.read_bytes())}
    response = service.http.post("/v1/models/import", files=files)
    assert response.status_code == 201, response.text
    assert response.json()["name"] == STORED.stem
    assert response.headers["Location"] == f"/v1/models/{response.json()['id']}"
    drawn = service.http.post(f"{response.headers['Location']}/samples", json={"rows": 9})
    assert drawn.text.count("\n") == 10
    assert library(service, response.json()).sample(9, seed=1).shape[0] == 9


@pytest.mark.parametrize(
    ("call", "body"),
    [
        ("samples", {"rows": 20, "seed": 4}),
        ("samples", {"rows": 20, "seed": 4, "given": {"fuel": "diesel"}}),
        ("scores", {"rows": [{"mpg": 16, "cylinders": 4, "fuel": "?", "sold": "yes"}]}),
        ("imputations", {"rows": [{"mpg": 16, "cylinders": 4, "fuel": "petrol", "sold": None}]}),
        ("encodings", {"rows": [{"mpg": 16, "cylinders": 4, "fuel": "petrol", "sold": "no"}]}),
        ("dependencies", {"row": {"mpg": 16}}),
    ],
)
def test_it_answers_as_the_model_that_it_was(
    service: Running, model: dict[str, Any], imported: dict[str, Any], call: str, body: Any
) -> None:
    answers = [
        service.http.post(f"/v1/models/{found['id']}/{call}", json=body)
        for found in (model, imported)
    ]
    assert [answer.status_code for answer in answers] == [200, 200]
    first, second = (answer.text for answer in answers)
    assert first.replace(model["id"], "") == second.replace(imported["id"], "")


def test_it_maps_as_the_model_that_it_was(
    service: Running, model: dict[str, Any], imported: dict[str, Any]
) -> None:
    for kind in ("expected", "data"):
        maps = [
            service.http.get(f"/v1/models/{found['id']}/dependencies", params={"kind": kind})
            for found in (model, imported)
        ]
        assert maps[0].status_code == 200
        assert maps[0].json() == maps[1].json()


def test_its_jobs_make_what_the_models_own_jobs_make(
    service: Running, model: dict[str, Any], imported: dict[str, Any], cars: bytes
) -> None:
    contents = []
    for found in (model, imported):
        asked = {"rows": 6000, "seed": 3}
        sample = service.http.post(f"/v1/models/{found['id']}/samples", json=asked)
        scores = service.http.post(
            f"/v1/models/{found['id']}/scores?format=csv",
            content=cars + b"16,4,petrol,yes\n",
            headers={"Content-Type": "text/csv"},
        )
        for queued in (sample, scores):
            assert queued.status_code == 202, queued.text
            work(service, queued.json()["job_id"])
            place = queued.json()["id"]
            kind = "samples" if place.startswith("smp") else "scores"
            contents.append(service.http.get(f"/v1/{kind}/{place}/content").content)
    assert contents[:2] == contents[2:]


def test_a_deleted_import_leaves_nothing(start: Callable[..., Running], file: bytes) -> None:
    service = start()
    before = service.traces()
    brought = service.http.post("/v1/models/import", content=file, headers=BARE).json()
    assert brought["name"] == "model"
    assert service.http.delete(f"/v1/models/{brought['id']}").status_code == 204
    assert_problem(service.http.get(f"/v1/models/{brought['id']}"), 404, "not-found")
    collect_garbage(service.resources, service.catalog.orphans.take_due())
    assert service.traces() == before


def test_an_import_sent_twice_is_one_model(service: Running, file: bytes) -> None:
    headers = BARE | {"Idempotency-Key": uuid.uuid4().hex}
    first = service.http.post("/v1/models/import", content=file, headers=headers)
    before = service.traces()
    again = service.http.post("/v1/models/import", content=file, headers=headers)
    assert (again.status_code, again.json()) == (201, first.json())
    assert again.headers["Idempotent-Replayed"] == "true"
    assert service.traces() == before
    other = service.http.post("/v1/models/import?name=other", content=file, headers=headers)
    assert_problem(other, 422, "idempotency-key-reused")


def _nan(data: bytes) -> bytes:
    tensors, manifest = unpack_tensors(data)
    next(iter(tensors.values())).fill_(float("nan"))
    return pack_tensors(tensors, manifest)


def _enormous(data: bytes) -> bytes:
    tensors, manifest = unpack_tensors(data)
    manifest["config"] |= {"d_hidden": 8192, "n_hidden_layers": 32, "d_latent": 512}
    return pack_tensors(tensors, manifest)


def _version(data: bytes) -> bytes:
    tensors, manifest = unpack_tensors(data)
    return pack_tensors(tensors, manifest | {"version": 3})


BAD: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "a table": lambda data: b"a,b\n1,2\n",
    "truncated": lambda data: data[:-1],
    "altered": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "of another version": _version,
    "weights are no numbers": _nan,
    "an enormous model": _enormous,
    "no model": lambda data: pack_tensors({"a": torch.zeros(1)}, {"format": "gcvae-model"}),
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("as_form", [True, False])
def test_what_is_no_model_is_refused_and_leaves_nothing(
    service: Running, file: bytes, what: str, as_form: bool
) -> None:
    before, data = service.traces(), BAD[what](file)
    response = (
        service.http.post("/v1/models/import", files={"file": ("m.gcvae", data)})
        if as_form
        else service.http.post("/v1/models/import", content=data, headers=BARE)
    )
    problem = assert_problem(response, 422, "invalid-model")
    assert "gcvae train" in problem["errors"][0]["expected"]
    assert service.traces() == before


@pytest.mark.parametrize(
    ("query", "content_type", "status", "name"),
    [
        ("", "text/plain", 415, "unsupported-media-type"),
        ("?name=" + 201 * "x", "application/octet-stream", 422, "invalid-request"),
        ("?name=a%00b", "application/octet-stream", 422, "invalid-request"),
        ("?nmae=a", "application/octet-stream", 422, "invalid-request"),
    ],
)
def test_a_request_that_is_wrong_is_refused_before_the_file_is_kept(
    service: Running, file: bytes, query: str, content_type: str, status: int, name: str
) -> None:
    before = service.traces()
    headers = {"Content-Type": content_type}
    response = service.http.post(f"/v1/models/import{query}", content=file, headers=headers)
    assert_problem(response, status, name)
    assert service.traces() == before


def test_limits_bound_what_is_brought_in(start: Callable[..., Running], file: bytes) -> None:
    for setting, limit, status, name in (
        ("max_upload_bytes", 1000, 413, "too-large"),
        ("max_columns", 3, 422, "limit-exceeded"),
        ("max_levels", 2, 422, "limit-exceeded"),
    ):
        service = start(**{setting: limit})
        before = service.traces()
        response = service.http.post("/v1/models/import", content=file, headers=BARE)
        problem = assert_problem(response, status, name)
        assert problem["setting"] == f"GCVAE_{setting.upper()}"
        assert service.traces() == before


def test_a_process_that_is_killed_at_it_leaves_nothing(
    service: Running, file: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.http.post("/v1/models/import", content=BAD["empty"](file), headers=BARE)
    before = service.traces()
    publish = service.resources.store.publish

    def publish_and_kill(*given: Any) -> Any:
        published = publish(*given)
        pids = inline_pids()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)  # it dies at the work, and not before
        service.loop.call_later(0.3, _kill, pids)
        return published

    monkeypatch.setattr(service.resources.store, "publish", publish_and_kill)
    response = service.http.post("/v1/models/import", content=file, headers=BARE)
    assert_problem(response, 503, "process-died")
    assert service.traces() == before


def _kill(pids: set[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def test_a_service_that_is_killed_at_it_leaves_bytes_that_are_swept(
    start: Callable[..., Running], file: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = start(reservation_seconds=0.05)
    before, workspace = service.traces(), service.catalog.workspace("default")

    class KilledError(BaseException):
        """Nothing after it is done."""

    def die(*_: object, **__: object) -> None:
        raise KilledError

    monkeypatch.setattr("service.routes.imports._examined", die)
    monkeypatch.setattr("service.reservations._abandon", lambda *_: None)
    with pytest.raises(KilledError):
        add_model(service.resources, workspace, Upload(io.BytesIO(file), "held", None))
    assert service.traces() != before
    time.sleep(0.1)
    collect_garbage(service.resources, service.catalog.orphans.take_due())
    assert service.traces() == before


def test_the_service_starts_without_what_reads_tables() -> None:
    """They come with the first table, or the first page of a report."""
    heavy = "{'torch', 'pandas', 'numpy', 'pyarrow'} & set(sys.modules)"
    code = f"import sys, service.app; print(sorted({heavy}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert found.stdout.strip() == b"[]"


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_bare_file_of_a_command_line_is_read(service: Running) -> None:
    command = ["curl", "-s", f"{service.url}/v1/models/import?name=mine", "-H"]
    command += ["Content-Type: application/octet-stream", "--data-binary", f"@{STORED}"]
    brought = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert (brought["name"], brought["status"]) == ("mine", "ready")
    assert brought["artifact_sha256"] == hashlib.sha256(read_artifact(STORED)).hexdigest()


def test_a_stored_model_of_another_version_says_what_to_do(
    service: Running, imported: dict[str, Any], file: bytes
) -> None:
    stored = service.store.publish(f"models/{imported['id']}/other", _version(file))
    with service.catalog.database.engine.begin() as connection:
        connection.execute(
            sa.update(ModelRow)
            .where(ModelRow.id == imported["id"])
            .values(artifact_key=stored.key, artifact_sha256=stored.sha256)
        )
    answer = service.http.post(f"/v1/models/{imported['id']}/samples", json={"rows": 5})
    problem = assert_problem(answer, 409, "model-of-another-version")
    assert "version 3" in problem["detail"]
    assert "train the model again" in problem["detail"]
