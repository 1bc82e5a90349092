"""A data folder of an older version opens: its models do what they did, its jobs go on.

`data_folders/version-3.tar.gz` was left behind by the last service and worker that wrote models of
version 3. Its model `ready` is trained, of an orders table in which a product has one category; a
sample and scores of it wait for a worker. `half` was being trained when the worker was shut down:
its job waits, with a checkpoint. It is stored, not made anew.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from gcvae import Synthesizer, read_table
from gcvae.artifact.file import unpack_tensors
from gcvae.artifact.versions import VERSION
from gcvae_cli.__main__ import main
from tests.running_service import Running, attempt_by_child, library, running, settings_in, work

STORED = Path(__file__).parent / "data_folders" / "version-3.tar.gz"
CATEGORIES = {"lamp": "home", "rug": "home", "shoe": "wear", "mat": "sport", "bike": "sport"}
CSV = {"Content-Type": "text/csv", "Accept": "text/csv"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service on the older one's data folder."""
    folder = tmp_path_factory.mktemp("older")
    with tarfile.open(STORED) as archive:
        # Pythons before 3.11.4 have no filter, and take none as an argument.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
    with running(settings_in(folder / "gcvae-data", max_inline_score_rows=5)) as service:
        yield service


@pytest.fixture(scope="module")
def models(service: Running) -> dict[str, Any]:
    """The older service's models by their names."""
    return {model["name"]: model for model in service.http.get("/v1/models").json()["items"]}


@pytest.fixture(scope="module")
def table(service: Running, models: dict[str, Any]) -> bytes:
    """The table that they were trained on."""
    dataset = service.catalog.workspace("default").datasets.get(models["ready"]["dataset_id"])
    return service.store.read(dataset.object_key, dataset.sha256)


def _waiting(service: Running, kind: str) -> list[dict[str, Any]]:
    jobs = service.http.get("/v1/jobs").json()["items"]
    return [job for job in jobs if (job["kind"], job["status"]) == (kind, "queued")]


def _done(service: Running, job_id: str) -> bytes:
    """What a job makes."""
    work(service, job_id)
    job = service.http.get(f"/v1/jobs/{job_id}").json()
    assert job["status"] == "succeeded", job
    result_id = service.catalog.workspace("default").jobs.get(job_id).result_id
    call = f"/v1/{job['kind']}s/{result_id}/content"
    return service.http.get(call).content


def assert_orders(rows: pd.DataFrame) -> None:
    """Asserts that rows are as the model's table: all products, each of its category."""
    assert set(rows["product"]) == set(CATEGORIES)
    assert (rows["product"].map(CATEGORIES) == rows["category"]).all()


def test_its_model_is_sampled_scored_completed_and_mapped_at_once(
    service: Running, models: dict[str, Any], table: bytes
) -> None:
    model, path = library(service, models["ready"]), f"/v1/models/{models['ready']['id']}"
    asked = {"rows": 500, "seed": 1, "format": "csv"}
    answer = service.http.post(f"{path}/samples", json=asked)
    assert answer.status_code == 200, answer.text
    assert_orders(read_table(answer.content))

    few = b"\n".join(table.splitlines()[:6])
    scores = service.http.post(f"{path}/scores?seed=1&draws=10", content=few, headers=CSV)
    expected = model.log_likelihood(read_table(few), draws=10, seed=1)
    assert np.isfinite(expected["log_likelihood"]).all()
    found = pd.read_csv(io.BytesIO(scores.content), float_precision="round_trip")
    pd.testing.assert_frame_equal(found, expected, check_exact=True)

    blanks = few.replace(b"home", b"")
    completed = service.http.post(f"{path}/imputations?seed=1", content=blanks, headers=CSV)
    assert b",home," in completed.content
    for call in ("dependencies?kind=total", "dependencies"):
        assert service.http.get(f"{path}/{call}").status_code == 200
    encoded = service.http.post(f"{path}/encodings", content=few, headers=CSV)
    assert len(encoded.content.splitlines()) == 6


def test_its_jobs_that_wait_are_done(service: Running, table: bytes) -> None:
    [sampling], [scoring] = _waiting(service, "sample"), _waiting(service, "score")
    drawn, scored = (_done(service, job["id"]) for job in (sampling, scoring))
    assert_orders(read_table(drawn))
    scores = json.loads(scored)["scores"]
    assert len(scores) == len(read_table(table))
    assert np.isfinite([row["log_likelihood"] for row in scores]).all()


def test_its_stored_model_goes_through_every_other_door(
    service: Running, models: dict[str, Any], tmp_path: Path
) -> None:
    content = service.http.get(f"/v1/models/{models['ready']['id']}/artifact").content
    assert unpack_tensors(content)[1]["version"] == 3 < VERSION
    path = tmp_path / "model.gcvae"
    path.write_bytes(content)
    drawn = tmp_path / "drawn.csv"
    assert main(["sample", str(path), "--rows", "500", "--seed", "1", "-o", str(drawn)]) == 0
    asked = {"rows": 500, "seed": 1, "format": "csv"}

    headers = {"Content-Type": "application/octet-stream"}
    imported = service.http.post("/v1/models/import?name=again", content=content, headers=headers)
    assert imported.status_code == 201, imported.text
    for model in (models["ready"]["id"], imported.json()["id"]):
        answer = service.http.post(f"/v1/models/{model}/samples", json=asked)
        assert answer.content == drawn.read_bytes()


def test_its_half_trained_model_begins_anew_says_so_and_becomes_what_it_would_have_been(
    service: Running, models: dict[str, Any], table: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    """A code may mean something else now: the checkpoint's weights would be of another model."""
    half = models["half"]
    assert service.catalog.workspace("default").jobs.get(half["job_id"]).checkpoint_key is not None
    attempt_by_child(service, half["job_id"])
    job = service.http.get(f"/v1/jobs/{half['job_id']}").json()
    assert (job["status"], job["attempt"]) == ("succeeded", 2), job
    printed = capfd.readouterr()
    assert "training begins anew" in printed.out + printed.err
    trained = library(service, half)
    settings = {k: v for k, v in half["training"].items() if k not in ("preset", "seed", "device")}
    dataset = service.http.get(f"/v1/datasets/{half['dataset_id']}").json()
    afresh = Synthesizer.fit(
        read_table(table),
        schema=dataset["schema"],
        preset=half["training"]["preset"],
        seed=half["training"]["seed"],
        device="cpu",
        settings=settings,
    )
    weights = afresh.model.state_dict()
    assert all(torch.equal(weights[n], t) for n, t in trained.model.state_dict().items())
    assert_orders(trained.sample(500, seed=1))
