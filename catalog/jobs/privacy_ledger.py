"""Privacy ledgers: the joint privacy budget that the models of a table have spent, and its caps.

A training reserves its cost when it is queued and spends it before the first query. If it ends
before the query, the reservation is released; a spent cost remains, even if the training fails or
the model, job or dataset is deleted. Tables are identified by the checksum of their bytes: a table
that is uploaded again has the same ledger, and the caps of all its datasets apply. The ledger also
records models that were trained without differential privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.tables import DatasetRow, JobRow, SpendingRow, UnboundedRow
from catalog.ids import new_id
from catalog.records import Dataset, Document, PrivacyCost, Spending
from catalog.rows import WorkspaceRecords, copy_row, find_row, write_row

CheckCaps = Callable[[Sequence[Document], Document | None, int], None]
"""Function that raises an exception if a training would exceed a cap.

Its arguments are (1) the caps, (2) the sums of `nano_rho` and `threshold_delta` over all trainings
of the table, including the requested one (None if the requested training has no privacy guarantee),
and (3) the sum of `nano_rho` without the requested training.
"""


@dataclass(frozen=True)
class PrivacyRequest:
    """Privacy cost that a new training asks for.

    Attributes:
        cost: Maximum cost; None for a training without a privacy guarantee.
        caps: Limits on the joint cost of the models of a table. These limits are set in the
            service's configuration and hold for every table; further limits are in the records of
            the table's datasets.
        check_caps: Function that raises an exception if the training would exceed a cap.
    """

    cost: PrivacyCost | None
    caps: tuple[Document, ...]
    check_caps: CheckCaps


class PrivacyLedgers(WorkspaceRecords):
    """Reads and changes the privacy budgets of the tables of one workspace."""

    def spendings(self, sha256s: Iterable[str]) -> dict[str, list[Spending]]:
        """Returns the spent and reserved costs of each table by its checksum, the oldest first.

        Tables without costs are omitted.
        """
        found: dict[str, list[Spending]] = {}
        with self._database.reading() as session:
            for row in _rows(session, self._workspace, list(sha256s)):
                found.setdefault(row.sha256, []).append(copy_row(Spending, row))
        return found

    def unbounded(self, sha256s: Iterable[str]) -> dict[str, int]:
        """Returns the number of models without differential privacy by the table's checksum.

        Tables without such models are omitted.
        """
        ours = (UnboundedRow.workspace == self._workspace, UnboundedRow.sha256.in_(list(sha256s)))
        query = select(UnboundedRow.sha256, func.count()).where(*ours)
        with self._database.reading() as session:
            rows = session.execute(query.group_by(UnboundedRow.sha256)).all()
            return {sha256: int(n) for sha256, n in rows}

    def caps(self, sha256s: Iterable[str]) -> dict[str, dict[str, Document]]:
        """Returns the privacy caps by the table's checksum, then by dataset id."""
        found: dict[str, dict[str, Document]] = {}
        with self._database.reading() as session:
            for sha256, name, cap in _caps(session, self._workspace, list(sha256s)):
                found.setdefault(sha256, {})[name] = cap
        return found

    def set_cap(self, dataset_id: str, cap: Document | None) -> Dataset:
        """Sets or removes (None) the cap on the joint cost of the models of a dataset's table.

        Caps of other datasets with the same table remain.
        """
        with self._database.writing() as session:
            row = _locked(session, self._workspace, dataset_id)
            row.privacy_cap = cap
            return write_row(session, row, Dataset)


def reserve(session: Session, dataset_id: str, job: JobRow, asked: PrivacyRequest) -> None:
    """Reserves the privacy cost of a training job after checking all caps of its table.

    Raises:
        BudgetError: A cap would be exceeded (raised by `asked.check_caps`).
    """
    dataset = _locked(session, job.workspace, dataset_id)
    caps = [*_caps_of(session, dataset), *asked.caps]
    _require(session, dataset, caps, asked.cost, asked.check_caps)
    if asked.cost is not None:
        session.add(_spending(dataset, job, asked.cost, caps))


def release(session: Session, job_id: str) -> None:
    """Releases the reserved privacy cost of a training that has not queried its table."""
    unspent = (SpendingRow.job_id == job_id, SpendingRow.begun_at.is_(None))
    session.execute(delete(SpendingRow).where(*unspent))


def note_unbounded(session: Session, job: JobRow) -> None:
    """Records that a training without differential privacy has made a model of its table."""
    dataset = session.get(DatasetRow, job.dataset_id)
    assert dataset is not None, "a dataset cannot be deleted while a training reads it"
    session.add(
        UnboundedRow(
            model_id=str(job.model_id),
            workspace=job.workspace,
            sha256=dataset.sha256,
        )
    )


def begin_spending(session: Session, job: JobRow, cost: PrivacyCost, check_caps: CheckCaps) -> None:
    """Records that a training is about to query its table: the reserved privacy cost is now spent.

    If an earlier attempt has queried the table and its results were lost, the same cost is spent
    again.

    Raises:
        BudgetError: A cap would be exceeded (raised by `check_caps`).
    """
    own = select(SpendingRow).where(SpendingRow.job_id == job.id).order_by(SpendingRow.id)
    rows = session.scalars(own).all()
    for row in rows:
        if row.begun_at is None:
            row.begun_at = database_clock()
            return
    dataset = _locked(session, job.workspace, str(job.dataset_id))
    caps = _caps_of(session, dataset) + [cap for row in rows[:1] for cap in row.caps]
    _require(session, dataset, caps, cost, check_caps)
    spending = _spending(dataset, job, cost, caps)
    spending.begun_at = database_clock()
    session.add(spending)


def _require(
    session: Session,
    dataset: DatasetRow,
    caps: Sequence[Document],
    cost: PrivacyCost | None,
    check_caps: CheckCaps,
) -> None:
    if not caps:
        return
    rows = _rows(session, dataset.workspace, [dataset.sha256])
    spent = sum(row.nano_rho for row in rows)
    if cost is None:
        check_caps(caps, None, spent)
        return
    thresholds = sum(row.threshold_delta for row in rows) + cost.threshold_delta
    total = {"nano_rho": spent + cost.nano_rho, "threshold_delta": thresholds}
    check_caps(caps, total, spent)


def _caps_of(session: Session, dataset: DatasetRow) -> list[Document]:
    return [cap for _, _, cap in _caps(session, dataset.workspace, [dataset.sha256])]


def _caps(
    session: Session, workspace: str, sha256s: Sequence[str]
) -> list[tuple[str, str, Document]]:
    """Returns (checksum, dataset id, cap) of each dataset with one of these tables and a cap."""
    ours = (DatasetRow.workspace == workspace, DatasetRow.sha256.in_(sha256s))
    query = select(DatasetRow.sha256, DatasetRow.id, DatasetRow.privacy_cap).where(*ours)
    rows = session.execute(query.order_by(DatasetRow.id)).all()
    return [(sha256, name, cap) for sha256, name, cap in rows if cap is not None]


def _spending(
    dataset: DatasetRow, job: JobRow, cost: PrivacyCost, caps: Sequence[Document]
) -> SpendingRow:
    return SpendingRow(
        id=new_id("prv"),
        workspace=dataset.workspace,
        sha256=dataset.sha256,
        model_id=str(job.model_id),
        job_id=job.id,
        **asdict(cost),
        caps=[*caps],
    )


def _rows(session: Session, workspace: str, sha256s: Sequence[str]) -> Sequence[SpendingRow]:
    ours = (SpendingRow.workspace == workspace, SpendingRow.sha256.in_(sha256s))
    return session.scalars(select(SpendingRow).where(*ours).order_by(SpendingRow.id)).all()


def _locked(session: Session, workspace: str, dataset_id: str) -> DatasetRow:
    """Returns the database row of a dataset after locking the privacy ledger of its table.

    The lock consists of locks on the rows of all datasets with the same table, in the order of
    their ids to prevent deadlocks.
    """
    sha256 = find_row(session, DatasetRow, dataset_id, workspace).sha256
    same = (DatasetRow.workspace == workspace, DatasetRow.sha256 == sha256)
    query = select(DatasetRow.id).where(*same).order_by(DatasetRow.id).with_for_update()
    session.scalars(query).all()
    return find_row(session, DatasetRow, dataset_id, workspace)
