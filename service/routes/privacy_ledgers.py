"""Endpoints that read and cap the privacy budget spent by all models of a dataset together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query

from catalog.jobs.privacy_ledger import PrivacyRequest
from catalog.records import Dataset, Document, PrivacyCost, Spending
from gcvae.training.differential_privacy.composition import (
    RHO_UNIT,
    joint_epsilon,
    privacy_cost,
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
    """Read the privacy budget that the models of a dataset have spent: the epsilon of each model
    and the joint epsilon. Datasets with the same content share the budget and the strictest cap.
    Deleted models count. There is no joint epsilon if models without differential privacy exist."""
    dataset = workspace.datasets.get(dataset_id)
    return _ledger(dataset, _accounts(workspace, [dataset])[dataset.sha256], delta)


@router.put("/{dataset_id}/privacy")
def cap_privacy(
    dataset_id: str, body: NewPrivacyCapBody, workspace: Workspace
) -> PrivacyLedgerBody:
    """Set a cap on the joint privacy budget of a dataset's models; null removes it. Trainings that
    would exceed the cap, or that do not use differential privacy, are then refused, also on other
    datasets with the same content. If models without differential privacy exist already, the cap
    only applies to later trainings, as `note` says."""
    cap = None if body.cap is None else body.cap.model_dump()
    changed_by = f"PUT /v1/datasets/{dataset_id}/privacy with scope 'write' changes the cap"
    if cap is not None:
        cap |= {"of": "the dataset", "changed_by": changed_by}
    dataset = workspace.privacy.set_cap(dataset_id, cap)
    return _ledger(dataset, _accounts(workspace, [dataset])[dataset.sha256], None)


def privacy_request(resources: Resources, training: Document) -> PrivacyRequest:
    """Returns the privacy cost of a training, and the caps of the service on the joint cost of all
    trainings on a table. The caps are checked when the training is queued.

    Args:
        training: Training options, as `checked_training` returns them.
    """
    cost = privacy_cost(training.get("differential_privacy") or {})
    asked = None if cost is None else PrivacyCost(**cost)
    return PrivacyRequest(asked, _caps_of_service(resources), require_within)


def privacy_bodies(workspace: Workspace, datasets: list[Dataset]) -> dict[str, PrivacyBody]:
    """Returns the privacy budgets of datasets, by dataset id.

    Datasets without spent or reserved budget and without a cap are left out.
    """
    accounts = _accounts(workspace, datasets)
    found = {dataset.id: _totals(accounts[dataset.sha256], None) for dataset in datasets}
    return {name: body for name, body in found.items() if body is not None}


def dataset_with_privacy(workspace: Workspace, dataset: Dataset) -> DatasetBody:
    """Returns the response body of a dataset with its spent privacy budget."""
    return dataset_body(dataset, privacy_bodies(workspace, [dataset]).get(dataset.id))


@dataclass(frozen=True)
class _Account:
    """Spent privacy budget of a table.

    Attributes:
        spendings: Budget that each training has spent or reserved.
        caps: Caps by dataset id; the table may have been uploaded several times.
        n_unbounded: Number of models without differential privacy.
    """

    spendings: list[Spending]
    caps: dict[str, Document]
    n_unbounded: int

    @property
    def note(self) -> str | None:
        """Sentence that says how many models have no differential privacy; None if all have it.

        If a model has none, no epsilon bounds the privacy loss of all models together.
        """
        if not self.n_unbounded:
            return None
        counted = "1 model" if self.n_unbounded == 1 else f"{self.n_unbounded} models"
        limits = (
            f"{counted} of this table without differential privacy: there is no bound for all"
            " models together"
        )
        return f"{limits}; the cap applies only to later trainings" if self.caps else limits


def _accounts(workspace: Workspace, datasets: list[Dataset]) -> dict[str, _Account]:
    """Returns the spent privacy budgets by checksum of the dataset's table."""
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
    """Returns the response body with all spent budget. `delta` is as for `_totals`."""
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
    """Returns the privacy budget that all trainings on a table have spent together. Returns None if
    no budget was spent or reserved and there is no cap.

    The joint epsilon is reported at `delta`. None stands for the delta of the strictest cap or,
    without a cap, the smallest delta of the trainings.
    """
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
    """Rho is the budget of zero-concentrated differential privacy."""
    return spending.nano_rho / RHO_UNIT
