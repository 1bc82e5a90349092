"""Privacy ledgers: what the private models of a dataset have spent together, and the cap on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query

from catalog.jobs.privacy_ledger import PrivacyRequest
from catalog.records import Dataset, Document, Promise, Spending
from gcvae.training.differential_privacy.composition import (
    RHO_UNIT,
    joint_epsilon,
    promised,
    require_within,
    strictest,
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
        Query(
            gt=0,
            lt=1,
            description="delta of the reported epsilon; default: that of the cap, or the smallest",
        ),
    ] = None,
) -> PrivacyLedgerBody:
    """Read what the private models of a dataset have spent together: each with its epsilon, and the
    epsilon of all. A table that was uploaded twice has one ledger and one cap, the strictest; what
    is deleted stays in the ledger. With models without differential privacy there is no epsilon.
    """
    dataset = workspace.datasets.get(dataset_id)
    return _ledger(dataset, _accounts(workspace, [dataset])[dataset.sha256], delta)


@router.put("/{dataset_id}/privacy")
def cap_privacy(
    dataset_id: str, body: NewPrivacyCapBody, workspace: Workspace
) -> PrivacyLedgerBody:
    """Put a cap on what the models of a dataset may spend together, or take it away (null). Under a
    cap a training that would exceed it is refused, and so is one without differential privacy. It
    holds for all datasets with the same bytes, beside their own. Where there are models without
    differential privacy already it binds further ones alone, and `note` says so.
    """
    cap = None if body.cap is None else body.cap.model_dump()
    changed_by = f"PUT /v1/datasets/{dataset_id}/privacy with scope 'write' changes the cap"
    if cap is not None:
        cap |= {"of": "the dataset", "changed_by": changed_by}
    dataset = workspace.privacy.set_cap(dataset_id, cap)
    return _ledger(dataset, _accounts(workspace, [dataset])[dataset.sha256], None)


def privacy_request(resources: Resources, training: Document) -> PrivacyRequest:
    """What a checked training document asks of its table's ledger."""
    promise = promised(training.get("differential_privacy") or {})
    made = None if promise is None else Promise(**promise)
    return PrivacyRequest(made, _caps_of_service(resources), require_within)


def privacy_bodies(workspace: Workspace, datasets: list[Dataset]) -> dict[str, PrivacyBody]:
    """The totals of those datasets that have spent something or have a cap, by their ids."""
    accounts = _accounts(workspace, datasets)
    found = {dataset.id: _totals(accounts[dataset.sha256], None) for dataset in datasets}
    return {name: body for name, body in found.items() if body is not None}


def told_dataset(workspace: Workspace, dataset: Dataset) -> DatasetBody:
    """The answer's form of a dataset, with what its private models have spent."""
    return dataset_body(dataset, privacy_bodies(workspace, [dataset]).get(dataset.id))


@dataclass(frozen=True)
class _Account:
    """What the ledger knows of a table: spendings, caps by dataset, models without a promise."""

    spendings: list[Spending]
    caps: dict[str, Document]
    n_unbounded: int

    @property
    def note(self) -> str | None:
        """What the epsilon of all does not say; None where it says all."""
        if not self.n_unbounded:
            return None
        counted = "1 model" if self.n_unbounded == 1 else f"{self.n_unbounded} models"
        said = (
            f"{counted} of this table without differential privacy: there is no bound for all"
            " models together"
        )
        return f"{said}; the cap applies only to later trainings" if self.caps else said


def _accounts(workspace: Workspace, datasets: list[Dataset]) -> dict[str, _Account]:
    """The accounts of the datasets' tables, by their checksums."""
    sha256s = {dataset.sha256 for dataset in datasets}
    ledgers = workspace.privacy
    spent, caps = ledgers.spendings(sha256s), ledgers.caps(sha256s)
    unbounded = ledgers.unbounded(sha256s)
    return {
        name: _Account(spent.get(name, []), caps.get(name, {}), unbounded.get(name, 0))
        for name in sha256s
    }


def _caps_of_service(resources: Resources) -> tuple[Document, ...]:
    settings = resources.settings
    if settings.max_privacy_epsilon is None:
        return ()
    return (
        {
            "epsilon": settings.max_privacy_epsilon,
            "delta": settings.max_privacy_delta,
            "of": "this service",
            "changed_by": f"{variable('max_privacy_epsilon')} can be changed by the operator",
        },
    )


def _ledger(dataset: Dataset, account: _Account, delta: float | None) -> PrivacyLedgerBody:
    totals = _totals(account, delta) or PrivacyBody(
        epsilon=None if account.n_unbounded else 0.0,
        models_without_privacy=account.n_unbounded,
        note=account.note,
    )
    known = totals.model_dump()
    spent = account.spendings
    listed = [SpendingBody.model_validate(vars(one) | {"rho": _rho(one)}) for one in spent]
    return PrivacyLedgerBody(dataset_id=dataset.id, spendings=listed, **known)


def _totals(account: _Account, delta: float | None) -> PrivacyBody | None:
    """What was spent in all; None where nothing was and there is no cap."""
    spendings, caps = account.spendings, account.caps
    if not caps and not spendings:
        return None
    capped = strictest(caps) if caps else None
    cap = None if capped is None else caps[capped]
    if delta is None:
        delta = float(cap["delta"]) if cap else min(one.delta for one in spendings)
    begun = [one for one in spendings if one.begun_at is not None]
    thresholds = sum(one.threshold_delta for one in begun)
    return PrivacyBody(
        rho_spent=sum(map(_rho, begun)),
        rho_set_aside=sum(_rho(one) for one in spendings if one.begun_at is None),
        epsilon=None
        if account.n_unbounded
        else joint_epsilon(sum(one.nano_rho for one in begun), thresholds, delta),
        delta=delta,
        cap=cap,
        cap_of=capped,
        models_without_privacy=account.n_unbounded,
        note=account.note,
    )


def _rho(spending: Spending) -> float:
    return spending.nano_rho / RHO_UNIT
