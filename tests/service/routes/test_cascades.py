"""A dataset goes alone, or with all that was made of it; what stays is said."""

from __future__ import annotations

from collections.abc import Callable

from tests.running_service import Running, assert_problem, train, work


def test_a_dataset_goes_with_all_that_was_made_of_it(
    start: Callable[..., Running], cars: bytes
) -> None:
    service = start(max_inline_sample_rows=10)
    model = train(service, cars)
    sample = service.http.post(f"/v1/models/{model['id']}/samples", json={"rows": 20}).json()
    path, kept = f"/v1/datasets/{model['dataset_id']}", f"/v1/models/{model['id']}"
    assert_problem(service.http.delete(f"{path}?cascade=true"), 409, "conflict")
    assert service.http.get(path).status_code == service.http.get(kept).status_code == 200
    work(service, sample["job_id"])
    assert service.http.get(f"/v1/samples/{sample['id']}/content").status_code == 200
    deleted = service.http.delete(f"{path}?cascade=true")
    assert (deleted.status_code, deleted.headers["Kept-Models"]) == (204, "0")
    for gone in (path, kept, f"/v1/samples/{sample['id']}"):
        assert_problem(service.http.get(gone), 404, "not-found")
    assert service.traces()["store"] == []


def test_models_that_stay_are_counted(start: Callable[..., Running], cars: bytes) -> None:
    service = start()
    model = train(service, cars)
    deleted = service.http.delete(f"/v1/datasets/{model['dataset_id']}")
    assert (deleted.status_code, deleted.headers["Kept-Models"]) == (204, "1")
    assert service.http.get(f"/v1/models/{model['id']}").json()["status"] == "ready"
