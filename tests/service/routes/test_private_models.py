"""Models under differential privacy, asked for over REST."""

from __future__ import annotations

import json
from typing import Any

from tests.running_service import Running, assert_problem, work

N_ROWS = 1_200
ROWS = [f"{i * 7 % 60},{'да' if i % 3 else 'нет'},{'x' if i % 2 else 'y'}" for i in range(N_ROWS)]
TABLE = ("years,ответ,group\n" + "\n".join(ROWS) + "\n71,да,x\n").encode()
NEVER = {"allowed": False}
DECLARED: dict[str, Any] = {
    "columns": [
        {"name": "group", "kind": "categorical", "levels": ["x", "y"], "missing": NEVER},
        {"name": "ответ", "kind": "boolean", "levels": ["нет", "да"], "missing": NEVER},
        {"name": "years", "kind": "integer", "minimum": 0, "maximum": 99, "missing": NEVER},
    ]
}
QUICK = {"preset": "fast", "device": "cpu", "max_steps": 20, "annealing": 0.0}
PROMISE = {"epsilon": 5, "delta": 1e-6, "target": "ответ"}


def asked_for(service: Running, schema: dict[str, Any]) -> dict[str, Any]:
    """A model in training, of a table with what is said of its columns."""
    dataset = service.http.post(
        "/v1/datasets", files={"file": ("t.csv", TABLE)}, data={"schema": json.dumps(schema)}
    ).json()
    training = QUICK | {"differential_privacy": PROMISE}
    body = {"dataset_id": dataset["id"], "training": training}
    response = service.http.post("/v1/models", json=body)
    assert response.status_code == 202, response.text
    return dict(response.json())


def test_a_private_model_knows_what_was_declared_and_shows_its_ledger(service: Running) -> None:
    model = asked_for(service, DECLARED)
    assert "report_share" not in model["training"]
    assert model["schema"]["columns"] == DECLARED["columns"]
    work(service, model["job_id"])
    trained = service.http.get(f"/v1/models/{model['id']}").json()
    job = service.http.get(f"/v1/jobs/{model['job_id']}").json()
    assert trained["status"] == "ready", job
    ledger = trained["record"]["differential_privacy"]
    assert (ledger["epsilon"], ledger["delta"]) == (5.0, 1e-6)
    assert ledger["rho_spent"] <= ledger["rho"]
    [years] = [column for column in trained["schema"]["columns"] if column["name"] == "years"]
    assert (years["minimum"], years["maximum"]) == (0, 99)
    samples = {"rows": 5, "seed": 1}
    drawn = service.http.post(f"/v1/models/{model['id']}/samples", json=samples)
    assert drawn.text.splitlines()[0] == "years,ответ,group"


def test_a_dataset_whose_columns_are_not_declared_fails_with_the_lines_to_add(
    service: Running,
) -> None:
    model = asked_for(service, {"columns": DECLARED["columns"][:2]})
    work(service, model["job_id"])
    job = service.http.get(f"/v1/jobs/{model['job_id']}").json()
    assert job["status"] == "failed"
    [problem] = job["error"]["problems"]
    assert problem["column"] == "years"
    assert '"name": "years"' in problem["expected"]


def test_a_promise_that_can_not_be_kept_is_refused_by_its_pointer(service: Running) -> None:
    training = {"differential_privacy": {"epsilon": -1, "delta": 1e-6}}
    table = {"file": ("t.csv", b"a,b\n1,x\n2,y\n3,x\n")}
    dataset = service.http.post("/v1/datasets", files=table).json()["id"]
    response = service.http.post("/v1/models", json={"dataset_id": dataset, "training": training})
    problem = assert_problem(response, 422, "invalid-training")
    assert problem["errors"][0]["pointer"] == "/training/differential_privacy/epsilon"
