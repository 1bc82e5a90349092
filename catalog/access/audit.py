"""Append-only audit log: who did what, when, from where, and with what result.

    digest_n = sha256(digest_{n-1} + entry n as JSON with sorted keys)

If an entry is changed, removed or inserted, the digests of all later entries no longer match. If
the last digest is also stored elsewhere, it reveals entries removed at the end.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime

from sqlalchemy import select

from catalog.database.engine import serialize
from catalog.database.tables import AuditRow
from catalog.ids import new_id
from catalog.pages import ListedRecords
from catalog.records import AuditedAction, AuditEntry
from catalog.rows import Records, copy_row

_CHAIN_LOCK = 7_203_120  # any number, the same in every process
_NO_DIGEST = "0" * 64
_READ_AT_ONCE = 1000
_LAST = select(AuditRow).order_by(AuditRow.number.desc()).limit(1)


OPERATOR = "operator"
"""Actor of commands that are run on the server."""
ANYONE = "anyone"
"""Actor of requests to a service that requires no API keys."""


class Audit(Records):
    """Reads and extends the audit log of all workspaces."""

    def append(self, action: AuditedAction) -> AuditEntry:
        """Appends an entry for an action to the audit log and returns it. Its digest depends on all
        earlier entries, so that later changes are detected."""
        with self._database.writing() as session:
            serialize(session, _CHAIN_LOCK)
            last = session.scalar(_LAST)
            entry = AuditEntry(
                number=1 if last is None else last.number + 1,
                id=new_id("aud"),
                at=datetime.now(UTC).isoformat(timespec="milliseconds"),
                **asdict(action),
                digest="",
            )
            digest = _digest(_NO_DIGEST if last is None else last.digest, entry)
            entry = replace(entry, digest=digest)
            session.add(AuditRow(**asdict(entry)))
            return entry

    def entries(self) -> Iterator[AuditEntry]:
        """Yields the audit log's entries of all workspaces, the oldest first."""
        number = 0
        while rows := self._after(number):
            yield from (copy_row(AuditEntry, row) for row in rows)
            number = rows[-1].number

    def last(self) -> AuditEntry | None:
        """Returns the newest entry of the audit log of all workspaces; None if the log is empty."""
        with self._database.reading() as session:
            row = session.scalar(_LAST)
            return None if row is None else copy_row(AuditEntry, row)

    def first_break(self) -> AuditEntry | None:
        """Returns the first entry whose digest or number is wrong; None if the log is intact.

        Such an entry was changed or inserted, or it follows a removed entry.
        """
        digest = _NO_DIGEST
        for number, entry in enumerate(self.entries(), 1):
            digest = _digest(digest, entry)
            if entry.number != number or entry.digest != digest:
                return entry
        return None

    def _after(self, number: int) -> Sequence[AuditRow]:
        query = select(AuditRow).where(AuditRow.number > number).order_by(AuditRow.number)
        with self._database.reading() as session:
            return session.scalars(query.limit(_READ_AT_ONCE)).all()


class WorkspaceAudit(ListedRecords[AuditRow, AuditEntry]):
    """Reads the audit log of one workspace."""

    _row, _record = AuditRow, AuditEntry


def _digest(before: str, entry: AuditEntry) -> str:
    members = asdict(entry)
    del members["digest"]
    line = json.dumps(members, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256((before + line).encode()).hexdigest()
