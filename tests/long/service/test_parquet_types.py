"""A data frame of every dtype goes through REST as Parquet, and its types come out."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.long.gcvae.files.test_frame_dtypes import FRAME, NAMES
from tests.running_service import Running, work
from tests.wordings import same_wording

HEADERS = {"Content-Type": "application/vnd.apache.parquet"}


@pytest.fixture(scope="module", name="table")
def _table() -> bytes:
    """All columns but periods, which pandas writes as a type of its own."""
    file = io.BytesIO()
    names = [name for name in NAMES if not name.startswith("period")]
    FRAME[names].to_parquet(file, index=False)
    return file.getvalue()


@pytest.fixture(scope="module", name="trained")
def _trained(service: Running, table: bytes) -> dict[str, Any]:
    dataset = service.http.post("/v1/datasets", content=table, headers=HEADERS).json()
    training = {"preset": "fast", "device": "cpu", "max_steps": 4}
    asked = {"dataset_id": dataset["id"], "training": training}
    model = service.http.post("/v1/models", json=asked).json()
    work(service, model["job_id"])
    return dict(service.http.get(f"/v1/models/{model['id']}").json())


@pytest.mark.parametrize("what", ["samples", "imputations"])
def test_every_type_of_a_data_frame_comes_back(
    service: Running, trained: dict[str, Any], table: bytes, what: str
) -> None:
    path = f"/v1/models/{trained['id']}/{what}"
    if what == "samples":
        answer = service.http.post(path, json={"rows": 30, "format": "parquet"})
    else:
        few = io.BytesIO()
        parquet.write_table(parquet.read_table(pa.BufferReader(table)).slice(0, 30), few)
        body = few.getvalue()
        answer = service.http.post(f"{path}?format=parquet", content=body, headers=HEADERS)
    assert answer.status_code == 200, answer.text
    own, found = (parquet.read_table(pa.BufferReader(data)) for data in (table, answer.content))
    assert found.schema.names == own.schema.names
    assert {f.name: f.type for f in found.schema} == {f.name: f.type for f in own.schema}


def test_periods_are_refused_by_name(service: Running) -> None:
    file = io.BytesIO()
    FRAME[["int8", "period M"]].to_parquet(file)
    answer = service.http.post("/v1/datasets", content=file.getvalue(), headers=HEADERS)
    assert answer.status_code == 422
    same_wording(answer.json()["detail"])
