"""Numbers as people write them, over REST: read, drawn, scored, completed and asked for."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import httpx
import pytest

from tests.running_service import Running, assert_problem, train

ORDERS = "price,vat,weight\n" + "".join(
    f'"{n % 9 + 1}.{n * 37 % 1000:03d},{n % 100:02d} €",{n % 30} %,{n / 8}\n' for n in range(200)
)
PRICE = re.compile(r"\d{1,3}(\.\d{3})*,\d\d €")


@pytest.fixture(scope="module")
def orders(service: Running) -> dict[str, Any]:
    return train(service, ORDERS.encode())


def cells(response: httpx.Response) -> list[dict[str, str]]:
    assert response.status_code == 200, response.text
    return list(csv.DictReader(io.StringIO(response.text)))


def test_samples_are_text_in_csv_and_numbers_in_json(
    service: Running, orders: dict[str, Any]
) -> None:
    path = f"/v1/models/{orders['id']}/samples"
    asked = {"rows": 50, "seed": 1}
    written = cells(service.http.post(path, json=asked | {"format": "csv"}))
    typed = service.http.post(path, json=asked | {"format": "json"}).json()
    assert all(PRICE.fullmatch(row["price"]) for row in written)
    assert all(re.fullmatch(r"\d+ %", row["vat"]) for row in written)
    as_typed = [float(row["price"][:-2].replace(".", "").replace(",", ".")) for row in written]
    assert [row["price"] for row in typed] == as_typed
    assert [f"{row['vat']} %" for row in typed] == [row["vat"] for row in written]


def test_a_condition_is_a_number_or_the_table_s_text(
    service: Running, orders: dict[str, Any]
) -> None:
    path = f"/v1/models/{orders['id']}/samples"
    answers = [
        service.http.post(path, json={"rows": 20, "seed": 1, "format": "json", "given": given})
        for given in (
            {"price": {"min": 2000.5}, "vat": 7},
            {"price": {"min": "2.000,50 €"}, "vat": "7 %"},
        )
    ]
    first, second = (answer.json() for answer in answers)
    assert first == second
    assert all(row["price"] >= 2000.5 and row["vat"] == 7 for row in first)
    refused = service.http.post(path, json={"rows": 1, "given": {"price": {"min": "2000.50"}}})
    problem = assert_problem(refused, 422, "invalid-condition")
    assert "such as '1.234,5 €'" in str(problem)


def test_a_file_and_its_numbers_in_json_score_alike(
    service: Running, orders: dict[str, Any]
) -> None:
    path = f"/v1/models/{orders['id']}/scores?draws=10&seed=1"
    head = "".join(ORDERS.splitlines(keepends=True)[:3])
    file = service.http.post(path, files={"file": ("rows.csv", head.encode())}).json()
    rows = [
        {"price": 1000.0, "vat": 0, "weight": 0.0},
        {"price": "2.037,01 €", "vat": "1 %", "weight": "0.125"},
    ]
    documents = service.http.post(path, json={"rows": rows}).json()
    assert documents["scores"] == file["scores"]


def test_a_separator_that_was_said_stays_when_a_column_is_patched(service: Running) -> None:
    headers = {"Content-Type": "text/csv"}
    table = ORDERS.encode()
    dataset = service.http.post("/v1/datasets", content=table, headers=headers).json()
    path = f"/v1/datasets/{dataset['id']}/schema"
    replaced = service.http.put(path, json={"separator": ";"}).json()
    assert replaced["changes"]["summary"] == ["separator is ';' (it was ',')"]
    patch = {"columns": {"price": {"number_format": {"suffix": " EUR", "prefix": ""}}}}
    refused = service.http.patch(path, json=patch)
    assert "such as '1.234,5 EUR'" in str(assert_problem(refused, 422, "invalid-schema"))
    patched = service.http.patch(path, json={"columns": {"vat": {"kind": "categorical"}}}).json()
    assert patched["schema"]["separator"] == ";"
    assert patched["schema"]["columns"][1]["levels"][0] == "0 %"
