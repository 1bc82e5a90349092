"""What private models of a table spend together, and the cap on it: over REST, with real jobs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from catalog.job_kinds import Queue
from catalog.records import Failed, PrivacyCost
from gcvae.errors import BudgetError
from gcvae.training.differential_privacy.composition import privacy_cost, require_within
from tests.running_service import Running, assert_problem, work
from tests.wordings import refuses, same_wording

N_ROWS = 900
NEVER = {"allowed": False}
DECLARED: dict[str, Any] = {
    "columns": [
        {"name": "group", "kind": "categorical", "levels": ["x", "y"], "missing": NEVER},
        {"name": "years", "kind": "integer", "minimum": 0, "maximum": 99, "missing": NEVER},
    ]
}
QUICK = {"preset": "fast", "device": "cpu", "max_steps": 10, "annealing": 0.0}
PROMISE = {"epsilon": 2.0, "delta": 1e-6}
RHO = privacy_cost(PROMISE)["nano_rho"] / 1e9  # type: ignore[index]
COUNTER = iter(range(1_000))


def table() -> bytes:
    """Another table each time: the ledger knows tables by their bytes."""
    number = next(COUNTER)
    rows = [f"{(i * 7 + number) % 60},{'x' if i % 3 else 'y'}" for i in range(N_ROWS)]
    return ("years,group\n" + "\n".join(rows) + "\n").encode()


def uploaded(service: Running, content: bytes) -> str:
    said = {"schema": json.dumps(DECLARED)}
    answer = service.http.post("/v1/datasets", files={"file": ("t.csv", content)}, data=said)
    return str(answer.json()["id"])


@pytest.fixture
def dataset(service: Running) -> str:
    """A dataset with a ledger of its own."""
    return uploaded(service, table())


def asked(service: Running, dataset: str, promise: dict[str, Any] | None = PROMISE) -> Any:
    training = QUICK | ({} if promise is None else {"differential_privacy": promise})
    return service.http.post("/v1/models", json={"dataset_id": dataset, "training": training})


def ledger(service: Running, dataset: str, **query: Any) -> dict[str, Any]:
    return dict(service.http.get(f"/v1/datasets/{dataset}/privacy", params=query).json())


def cap(service: Running, dataset: str, epsilon: float | None) -> dict[str, Any]:
    limit = None if epsilon is None else {"epsilon": epsilon, "delta": 1e-6}
    answer = service.http.put(f"/v1/datasets/{dataset}/privacy", json={"cap": limit})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_a_table_that_nothing_private_was_made_of_has_an_empty_ledger(
    service: Running, dataset: str
) -> None:
    assert service.http.get(f"/v1/datasets/{dataset}").json()["privacy"] is None
    found = ledger(service, dataset)
    assert (found["spendings"], found["rho_spent"], found["cap"]) == ([], 0.0, None)


def test_trainings_of_one_table_add_up_and_a_deleted_model_gives_nothing_back(
    service: Running, dataset: str
) -> None:
    models = [asked(service, dataset).json() for _ in range(2)]
    waiting = ledger(service, dataset)
    assert waiting["rho_set_aside"] == pytest.approx(2 * RHO)
    assert (waiting["rho_spent"], waiting["epsilon"]) == (0.0, 0.0)
    for model in models:
        work(service, model["job_id"])
    told = service.http.get(f"/v1/datasets/{dataset}").json()["privacy"]
    assert told["rho_spent"] == pytest.approx(2 * RHO)
    assert told["rho_set_aside"] == 0.0
    assert 2.0 < told["epsilon"] < 4.0
    assert told["delta"] == 1e-6
    one = ledger(service, dataset, delta=1e-9)
    assert one["epsilon"] > told["epsilon"]
    assert [spent["model_id"] for spent in one["spendings"]] == [m["id"] for m in models]
    listed = service.http.get("/v1/datasets?limit=200").json()["items"]
    assert told in [item["privacy"] for item in listed if item["id"] == dataset]
    service.http.delete(f"/v1/models/{models[0]['id']}")
    assert ledger(service, dataset)["rho_spent"] == pytest.approx(2 * RHO)


def test_a_table_that_is_deleted_and_uploaded_again_has_its_ledger(service: Running) -> None:
    content = table()
    first = uploaded(service, content)
    work(service, asked(service, first).json()["job_id"])
    service.http.delete(f"/v1/datasets/{first}", params={"cascade": True})
    second = uploaded(service, content)
    assert ledger(service, second)["rho_spent"] == pytest.approx(RHO)


def test_a_training_beyond_the_cap_is_refused_before_anything_is_counted(
    service: Running, dataset: str
) -> None:
    assert cap(service, dataset, 2.9)["cap"] == {"epsilon": 2.9, "delta": 1e-6}
    model = asked(service, dataset).json()
    problem = assert_problem(asked(service, dataset), 403, "privacy-budget-spent")
    [error] = problem["errors"]
    assert error["pointer"] == "/training/differential_privacy/epsilon"
    assert "exceed the cap of the dataset, epsilon 2.9 at delta 1e-06" in error["message"]
    assert "scope 'write'" in error["expected"]
    left = float(error["expected"].split("under ")[1].split(";")[0])
    assert asked(service, dataset, {"epsilon": left - 0.02, "delta": 1e-6}).status_code == 202
    assert_problem(asked(service, dataset, {"epsilon": 0.5, "delta": 1e-6}), 403,
                   "privacy-budget-spent")  # fmt: skip
    assert len(ledger(service, dataset)["spendings"]) == 2
    unbounded = assert_problem(asked(service, dataset, None), 403, "privacy-budget-spent")
    same_wording(unbounded["detail"])
    cap(service, dataset, None)
    assert asked(service, dataset, None).status_code == 202
    assert service.http.get(f"/v1/models/{model['id']}").json()["status"] == "training"


def test_of_trainings_that_are_asked_at_once_no_more_pass_than_the_cap_lets(
    service: Running,
) -> None:
    """Of two datasets with the same table, too."""
    content = table()
    datasets = [uploaded(service, content) for _ in range(2)]
    for dataset in datasets:
        cap(service, dataset, 2.9)
    ready = threading.Barrier(8)

    def ask(number: int) -> int:
        ready.wait()
        return int(asked(service, datasets[number % 2]).status_code)

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(ask, range(8)))
    assert statuses == [202] + [403] * 7
    assert ledger(service, datasets[0])["rho_set_aside"] == pytest.approx(RHO)


def test_a_training_that_ends_before_it_counts_gives_its_part_back(
    service: Running, dataset: str
) -> None:
    cap(service, dataset, 2.9)
    model = asked(service, dataset).json()
    service.http.post(f"/v1/jobs/{model['job_id']}/cancel")
    assert ledger(service, dataset)["spendings"] == []
    assert asked(service, dataset).status_code == 202
    again = service.http.post(f"/v1/jobs/{model['job_id']}/retry")
    assert_problem(again, 403, "privacy-budget-spent")


def test_a_training_that_counted_and_failed_has_spent_and_another_try_spends_again(
    service: Running, dataset: str
) -> None:
    model = asked(service, dataset).json()
    leases, catalog = service.catalog.leases, service.catalog
    cost = PrivacyCost(**privacy_cost(PROMISE))  # type: ignore[arg-type]
    claim = next(
        claim
        for claim in iter(lambda: leases.claim_next([Queue.TRAIN], "w", 60.0), None)
        if claim.job_id == model["job_id"]
    )
    leases.record_privacy_spending(claim, cost, require_within)
    assert ledger(service, dataset)["rho_spent"] == pytest.approx(RHO)
    # It lost what it had made of the counts.
    leases.record_privacy_spending(claim, cost, require_within)
    assert ledger(service, dataset)["rho_spent"] == pytest.approx(2 * RHO)
    cap(service, dataset, 2.9)
    with refuses(BudgetError):
        leases.record_privacy_spending(claim, cost, require_within)
    leases.finish(claim, Failed("trouble", "it failed"))
    assert ledger(service, dataset)["rho_spent"] == pytest.approx(2 * RHO)
    again = service.http.post(f"/v1/jobs/{model['job_id']}/retry")
    assert_problem(again, 403, "privacy-budget-spent")
    cap(service, dataset, None)
    assert service.http.post(f"/v1/jobs/{model['job_id']}/retry").status_code == 202
    assert ledger(service, dataset)["rho_set_aside"] == pytest.approx(RHO)
    assert catalog.workspace("default").jobs.get(model["job_id"]).status == "queued"


def test_a_declaration_with_a_gap_costs_nothing(service: Running) -> None:
    said = {"schema": json.dumps({"columns": DECLARED["columns"][:1]})}
    files = {"file": ("t.csv", table())}
    dataset = service.http.post("/v1/datasets", files=files, data=said).json()["id"]
    model = asked(service, dataset).json()
    work(service, model["job_id"])
    assert service.http.get(f"/v1/jobs/{model['job_id']}").json()["status"] == "failed"
    assert ledger(service, dataset)["spendings"] == []


@pytest.fixture
def capped(start: Callable[..., Running]) -> Running:
    """A service whose operator has set a cap."""
    return start(max_privacy_epsilon=2.5)


def test_the_cap_of_a_service_holds_for_every_table(capped: Running) -> None:
    dataset = uploaded(capped, table())
    assert asked(capped, dataset).status_code == 202
    problem = assert_problem(asked(capped, dataset), 403, "privacy-budget-spent")
    same_wording(problem["detail"])
    assert "GCVAE_MAX_PRIVACY_EPSILON" in problem["errors"][0]["expected"]
    assert_problem(asked(capped, uploaded(capped, table()), None), 403, "privacy-budget-spent")


@pytest.mark.parametrize(
    "limit",
    [
        {"epsilon": 0, "delta": 1e-6},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": 1e-6, "epsilonn": 1},
        {},
    ],
)
def test_a_cap_that_can_not_be_is_refused(
    service: Running, dataset: str, limit: dict[str, float]
) -> None:
    answer = service.http.put(f"/v1/datasets/{dataset}/privacy", json={"cap": limit})
    assert_problem(answer, 422, "invalid-request")


def test_a_table_that_is_uploaded_again_has_the_cap_too(service: Running) -> None:
    content = table()
    first, second = (uploaded(service, content) for _ in range(2))
    cap(service, first, 2.9)
    found = ledger(service, second)
    assert (found["cap"], found["cap_of"]) == ({"epsilon": 2.9, "delta": 1e-6}, first)
    told = service.http.get(f"/v1/datasets/{second}").json()["privacy"]
    assert told["cap"] == found["cap"]
    assert asked(service, second).status_code == 202
    for promise in (PROMISE, None):
        problem = assert_problem(asked(service, second, promise), 403, "privacy-budget-spent")
        same_wording(problem["detail"])
        assert (f"/v1/datasets/{first}/privacy" in problem["errors"][0]["expected"]) == bool(
            promise
        )
    assert cap(service, second, 9.0)["cap_of"] == first
    assert cap(service, second, 1.0)["cap_of"] == second
    assert ledger(service, first)["cap"]["epsilon"] == 1.0
    cap(service, second, None)
    cap(service, first, 2.9)
    assert service.http.delete(f"/v1/datasets/{first}").status_code == 204
    gone = ledger(service, second)
    assert (gone["cap"], gone["cap_of"]) == (None, None)
    assert gone["rho_set_aside"] == pytest.approx(RHO)


def test_a_model_without_a_promise_leaves_its_table_without_a_bound(
    service: Running, dataset: str
) -> None:
    work(service, asked(service, dataset).json()["job_id"])
    before = ledger(service, dataset)
    assert 0.0 < before["epsilon"] < 2.1
    assert (before["models_without_privacy"], before["note"]) == (0, None)
    model = asked(service, dataset, None).json()
    work(service, model["job_id"])
    service.http.delete(f"/v1/models/{model['id']}")
    for found in (
        ledger(service, dataset),
        service.http.get(f"/v1/datasets/{dataset}").json()["privacy"],
    ):
        assert (found["models_without_privacy"], found["epsilon"]) == (1, None)
        assert "there is no bound for all models together" in found["note"]
        assert found["rho_spent"] == pytest.approx(RHO)
    capped = cap(service, dataset, 2.9)
    assert capped["cap"]["epsilon"] == 2.9
    assert "applies only to later trainings" in capped["note"]


def test_a_table_with_unpromising_models_alone_has_no_bound_either(
    service: Running, dataset: str
) -> None:
    work(service, asked(service, dataset, None).json()["job_id"])
    found = ledger(service, dataset)
    assert (found["spendings"], found["epsilon"], found["models_without_privacy"]) == ([], None, 1)
    assert "no bound" in found["note"]
