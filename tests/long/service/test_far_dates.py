"""Dates such as 9999-12-31 over REST: read, drawn, scored, completed and asked for as values."""

from __future__ import annotations

import csv
import io
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest

from tests.running_service import Running, assert_problem, library, train

NEVER, UNTIL = "31.12.9999", "gültig bis"


def contracts() -> bytes:
    """Contracts of which some have no end, and of some it is not known."""
    random = np.random.default_rng(0)
    since = pd.Timestamp("2019-01-01") + pd.to_timedelta(random.integers(0, 1500, 600), unit="D")
    end = since + pd.to_timedelta(random.gamma(2, 60, 600).astype(int), unit="D")
    until = np.where(random.random(600) < 0.3, NEVER, end.strftime("%d.%m.%Y"))
    until = np.where(random.random(600) < 0.1, "", until)
    state = np.where((until == NEVER) & (random.random(600) < 0.9), "open", "closed")
    table = pd.DataFrame({"состояние": state, "seit": since.strftime("%d.%m.%Y"), UNTIL: until})
    return table.to_csv(index=False).encode()


@pytest.fixture(scope="module")
def model(service: Running) -> dict[str, Any]:
    return train(service, contracts(), preset="default", max_steps=40)


def cells(response: httpx.Response) -> list[dict[str, str]]:
    assert response.status_code == 200, response.text
    return list(csv.DictReader(io.StringIO(response.text)))


def test_the_profile_has_never_in_a_bar_of_its_own(service: Running, model: dict[str, Any]) -> None:
    [column] = [c for c in model["schema"]["columns"] if c["name"] == UNTIL]
    assert column["maximum"] == NEVER
    profile = service.http.get(f"/v1/datasets/{model['dataset_id']}/profile").json()
    [shown] = [c for c in profile["columns"] if c["name"] == UNTIL]
    n_never = contracts().decode().count(NEVER)
    assert (shown["histogram"]["edges"][-1], shown["histogram"]["counts"][-1]) == (NEVER, n_never)
    assert sum(shown["histogram"]["counts"]) == round(600 * (1 - shown["missing_share"]))
    assert shown["quantiles"]["0.5"].endswith(("2020", "2021", "2022", "2023"))


def test_rows_have_never_in_every_format(service: Running, model: dict[str, Any]) -> None:
    path, asked = f"/v1/models/{model['id']}/samples", {"rows": 60, "seed": 1}
    written = cells(service.http.post(path, json=asked | {"format": "csv"}))
    typed = service.http.post(path, json=asked | {"format": "json"}).json()
    assert [row[UNTIL] or "" for row in typed] == [row[UNTIL] for row in written]
    assert NEVER in {row[UNTIL] for row in written}
    assert None in {row[UNTIL] for row in service.http.post(
        path, json={"rows": 200, "seed": 1, "format": "json"}).json()}  # fmt: skip


def test_a_parquet_file_of_rows_is_scored_as_its_csv(
    service: Running, model: dict[str, Any]
) -> None:
    path, asked = f"/v1/models/{model['id']}", {"rows": 40, "seed": 1}
    scores = []
    for form in ("csv", "parquet"):
        rows = service.http.post(f"{path}/samples", json=asked | {"format": form}).content
        file = {"file": (f"rows.{form}", rows)}
        scores.append(service.http.post(f"{path}/scores?draws=9", files=file).json()["scores"])
    assert scores[0] == scores[1]


def test_never_is_scored_and_an_empty_cell_is_integrated_out(
    service: Running, model: dict[str, Any]
) -> None:
    rows = [
        {UNTIL: cell, "seit": "05.05.2020", "состояние": "closed"} for cell in (NEVER, None, "")
    ]
    answer = service.http.post(f"/v1/models/{model['id']}/scores?draws=50", json={"rows": rows})
    never, blank, empty = (score["contributions"][UNTIL] for score in answer.json()["scores"])
    assert never < -1.0
    assert blank == empty == 0.0
    found = library(service, model).log_likelihood(pd.DataFrame(rows), draws=50)
    assert found[f"contributions.{UNTIL}"].tolist() == pytest.approx([never, 0.0, 0.0], abs=1e-9)


def test_imputation_leaves_never_and_fills_the_empty_cells(
    service: Running, model: dict[str, Any]
) -> None:
    table = f"{UNTIL},состояние\n" + f"{NEVER},\n,open\n" * 40
    file = {"file": ("rows.csv", table.encode())}
    for query in ("", f"&columns={UNTIL}"):
        path = f"/v1/models/{model['id']}/imputations?format=csv{query}"
        filled = cells(service.http.post(path, files=file))
        assert {row[UNTIL] for row in filled[::2]} == {NEVER}
        assert "" not in {row[UNTIL] for row in filled}


def test_conditions_name_never_or_what_would_be_right(
    service: Running, model: dict[str, Any]
) -> None:
    path = f"/v1/models/{model['id']}/samples"
    for given in (NEVER, {"min": "01.01.2100"}, {"min": NEVER, "max": NEVER}):
        answer = service.http.post(path, json={"rows": 9, "format": "csv", "given": {UNTIL: given}})
        assert {row[UNTIL] for row in cells(answer)} == {NEVER}
    refused = service.http.post(path, json={"rows": 1, "given": {UNTIL: {"max": "31.12.10000"}}})
    problem = assert_problem(refused, 422, "invalid-condition")
    assert problem["errors"][0]["expected"] == "a date of the format %d.%m.%Y"
