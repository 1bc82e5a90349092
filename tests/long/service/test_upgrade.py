"""A data folder of an older version opens: its models are refused by name, its jobs go on.

`data_folders/version-3.tar.gz` was left behind by the last service and worker that wrote models of
version 3. Its model `ready` is trained, of an orders table in which a product has one category.
`half` was being trained when the worker was shut down: its job waits, with a checkpoint. It is
stored, not made anew.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from gcvae import Synthesizer, read_table
from tests.running_service import (
    Running,
    assert_problem,
    attempt_by_child,
    library,
    running,
    settings_in,
)

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


def assert_orders(rows: pd.DataFrame) -> None:
    """Asserts that rows are as the model's table: all products, each of its category."""
    assert set(rows["product"]) == set(CATEGORIES)
    assert (rows["product"].map(CATEGORIES) == rows["category"]).all()


def test_its_model_says_what_to_do(service: Running, models: dict[str, Any]) -> None:
    path = f"/v1/models/{models['ready']['id']}"
    answer = service.http.post(f"{path}/samples", json={"rows": 5})
    problem = assert_problem(answer, 409, "model-of-another-version")
    assert "version 3" in problem["detail"]
    assert "train the model again" in problem["detail"]


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
