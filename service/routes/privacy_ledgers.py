"""Privacy ledgers: what the private models of a dataset have spent together, and the cap on it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from catalog.jobs.privacy_ledger import PrivacyRequest
from catalog.records import Dataset, Document, Promise, Spending
from gcvae.training.differential_privacy.composition import (
    RHO_UNIT,
    joint_epsilon,
    promised,
    require_within,
)
from service.access import Workspace
from service.bodies import (
    DatasetBody,
    NewPrivacyCapBody,
    PrivacyBody,
    PrivacyLedgerBody,
    SpendingBody,
    dataset_body,
)
from service.http.json_bodies import JsonRoute
from service.resources import Resources
from service.settings import variable

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=JsonRoute)


@router.get("/{dataset_id}/privacy")
def read_privacy(
    dataset_id: str,
    workspace: Workspace,
    delta: Annotated[
        float | None,
        Query(gt=0, lt=1, description="at which epsilon is told; else the cap's, or the least"),
    ] = None,
) -> PrivacyLedgerBody:
    """Read what the private models of a dataset have spent together: each with its epsilon, and the
    epsilon of all. A table that was uploaded twice has one ledger; what is deleted stays in it.
    """
    dataset = workspace.datasets.get(dataset_id)
    return _ledger(dataset, _spendings(workspace, dataset), delta)


@router.put("/{dataset_id}/privacy")
def cap_privacy(
    dataset_id: str, body: NewPrivacyCapBody, workspace: Workspace
) -> PrivacyLedgerBody:
    """Put a cap on what the models of a dataset may spend together, or take it away (null). Under a
    cap a training that would exceed it is refused, and so is one without differential privacy.
    """
    cap = None if body.cap is None else body.cap.model_dump()
    changed_by = f"the cap is changed by PUT /v1/datasets/{dataset_id}/privacy, scope 'write'"
    if cap is not None:
        cap |= {"of": "the dataset", "changed_by": changed_by}
    dataset = workspace.privacy.set_cap(dataset_id, cap)
    return _ledger(dataset, _spendings(workspace, dataset), None)


def privacy_request(resources: Resources, training: Document) -> PrivacyRequest:
    """What a checked training document asks of its table's ledger."""
    promise = promised(training.get("differential_privacy") or {})
    made = None if promise is None else Promise(**promise)
    return PrivacyRequest(made, _caps_of_service(resources), require_within)


def privacy_bodies(workspace: Workspace, datasets: list[Dataset]) -> dict[str, PrivacyBody]:
    """The totals of those datasets that have spent something or have a cap, by their ids."""
    spent = workspace.privacy.spendings({dataset.sha256 for dataset in datasets})
    found = {
        dataset.id: _totals(dataset, spent.get(dataset.sha256, []), None) for dataset in datasets
    }
    return {name: body for name, body in found.items() if body is not None}


def told_dataset(workspace: Workspace, dataset: Dataset) -> DatasetBody:
    """The answer's form of a dataset, with what its private models have spent."""
    return dataset_body(dataset, privacy_bodies(workspace, [dataset]).get(dataset.id))


def _spendings(workspace: Workspace, dataset: Dataset) -> list[Spending]:
    return workspace.privacy.spendings([dataset.sha256]).get(dataset.sha256, [])


def _caps_of_service(resources: Resources) -> tuple[Document, ...]:
    settings = resources.settings
    if settings.max_privacy_epsilon is None:
        return ()
    return (
        {
            "epsilon": settings.max_privacy_epsilon,
            "delta": settings.max_privacy_delta,
            "of": "this service",
            "changed_by": f"{variable('max_privacy_epsilon')} is for who operates it to change",
        },
    )


def _ledger(dataset: Dataset, spendings: list[Spending], delta: float | None) -> PrivacyLedgerBody:
    totals = _totals(dataset, spendings, delta)
    known = {} if totals is None else totals.model_dump()
    listed = [SpendingBody.model_validate(vars(one) | {"rho": _rho(one)}) for one in spendings]
    return PrivacyLedgerBody(dataset_id=dataset.id, spendings=listed, **known)


def _totals(dataset: Dataset, spendings: list[Spending], delta: float | None) -> PrivacyBody | None:
    """What was spent in all; None where nothing was and there is no cap."""
    cap = dataset.privacy_cap
    if cap is None and not spendings:
        return None
    if delta is None:
        delta = float(cap["delta"]) if cap else min(one.delta for one in spendings)
    begun = [one for one in spendings if one.begun_at is not None]
    thresholds = sum(one.threshold_delta for one in begun)
    return PrivacyBody(
        rho_spent=sum(map(_rho, begun)),
        rho_set_aside=sum(_rho(one) for one in spendings if one.begun_at is None),
        epsilon=joint_epsilon(sum(one.nano_rho for one in begun), thresholds, delta),
        delta=delta,
        cap=cap,
    )


def _rho(spending: Spending) -> float:
    return spending.nano_rho / RHO_UNIT
