"""Notes of a table over REST: they come with the dataset, and end where the schema says it."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd

from tests.running_service import Running, assert_problem, train
from tests.wordings import same_wording

CSV = {"Content-Type": "text/csv"}


def indexed(n_rows: int = 120) -> bytes:
    rng = np.random.default_rng(0)
    size = rng.integers(10, 90, n_rows)
    size[[3, 50, *range(70, 80)]] = -999
    frame = pd.DataFrame({"size": size, "colour": rng.choice(["red", "green"], n_rows)})
    return frame.to_csv().encode()


def column(dataset: dict[str, Any], name: str) -> dict[str, Any]:
    return next(c for c in dataset["schema"]["columns"] if c["name"] == name)


def test_notes_come_with_the_dataset_and_end_where_the_schema_says_it(service: Running) -> None:
    dataset = service.http.post("/v1/datasets", content=indexed(), headers=CSV).json()
    index, marker = dataset["warnings"]
    assert index.startswith("column 'Unnamed: 0': has no name and only numbers the rows")
    assert "has -999 in 12 cells (the first in line 5)" in marker
    assert column(dataset, "Unnamed: 0") == {"name": "Unnamed: 0", "drop": True}
    place = f"/v1/datasets/{dataset['id']}/schema"
    said = {"size": {"missing": {"markers": ["-999"]}}, "Unnamed: 0": {"drop": False}}
    patched = service.http.patch(place, json={"columns": said}).json()
    assert not any("-999" in warning for warning in patched["warnings"])
    assert column(patched, "size")["missing"] == {"allowed": True, "markers": ["-999"]}
    assert column(patched, "Unnamed: 0")["kind"] == "identifier"
    said = {"size": {"missing": {"markers": []}}, "Unnamed: 0": {"drop": True}}
    assert service.http.patch(place, json={"columns": said}).json()["warnings"] == []


def test_a_model_finds_the_columns_of_a_file_with_an_index_again(service: Running) -> None:
    table = indexed(90)
    model = train(service, table)
    path = f"/v1/models/{model['id']}"
    drawn = service.http.post(f"{path}/samples", json={"rows": 5}).content
    assert drawn.startswith(b"size,colour\n")
    for call in ("scores", "imputations", "encodings"):
        answer = service.http.post(f"{path}/{call}?format=csv", content=table, headers=CSV)
        assert answer.status_code == 200, answer.text
        assert answer.content.count(b"\n") == 91
        without = pd.read_csv(io.BytesIO(table), index_col=0).to_csv(index=False).encode()
        same = service.http.post(f"{path}/{call}?format=csv", content=without, headers=CSV)
        assert same.status_code == 200, same.text
    broken = b",,\n0,1,2\n"
    problem = assert_problem(
        service.http.post("/v1/datasets", content=broken, headers=CSV), 422, "invalid-table"
    )
    same_wording(problem["detail"])
