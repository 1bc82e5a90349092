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


def test_a_table_of_three_rows_says_what_to_expect(service: Running) -> None:
    table = indexed(80).split(b"\n")[0] + b"\n0,1,red\n1,2,green\n2,3,red\n"
    dataset = service.http.post("/v1/datasets", content=table, headers=CSV).json()
    assert dataset["warnings"][0].startswith("the table has 3 rows, too few for training")


def test_a_file_that_names_its_separator_and_one_of_an_old_mac_are_read(service: Running) -> None:
    text = "colour;größe;\n" + "".join(f"{n % 3};{n % 7},5;\n" for n in range(60))
    for table in (f"sep=;\r\n{text}", text.replace("\n", "\r")):
        answer = service.http.post("/v1/datasets", content=table.encode(), headers=CSV)
        dataset = answer.json()
        assert [c["name"] for c in dataset["schema"]["columns"]] == [
            "colour", "größe", "Unnamed: 2",
        ]  # fmt: skip
        assert dataset["schema"]["separator"] == ";"
    long = service.http.post("/v1/datasets", content=b"a," + b"b" * 140_000 + b"\n", headers=CSV)
    assert "the name of a column has over 131,072 characters" in long.text


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


def test_keys_without_a_telling_name_are_found_and_doubt_is_said(service: Running) -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "сумма": np.round(random.lognormal(9, 1, 900)).astype(int),
            "policy": random.choice(6_000, 900, replace=False) + 20_000,
            "номер": random.choice(90_000_000, 900, replace=False) + 10_000_000,
            "x": random.choice(90_000_000, 900, replace=False) + 10_000_000,
        }
    )
    content = frame.to_csv(index=False).encode()
    dataset = service.http.post("/v1/datasets", content=content, headers=CSV).json()
    kinds = {c["name"]: c["kind"] for c in dataset["schema"]["columns"]}
    assert kinds == {"сумма": "integer", "policy": "identifier", "номер": "identifier",
                     "x": "integer"}  # fmt: skip
    [note] = [w for w in dataset["warnings"] if "are as distinct as keys" in w]
    assert note.startswith("column 'x'")
    place = f"/v1/datasets/{dataset['id']}/schema"
    patched = service.http.patch(place, json={"columns": {"x": {"kind": "identifier"}}}).json()
    assert column(patched, "x")["kind"] == "identifier"
    assert not any("are as distinct as keys" in warning for warning in patched["warnings"])
