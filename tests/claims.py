"""Claims on one job, whoever's turn it is: workers claim the job that is next."""

from __future__ import annotations

from catalog import Catalog, Claim


def claim_job(catalog: Catalog, job_id: str, owner: str, lease_seconds: float) -> Claim | None:
    """The claim on this very job; None where it is not to be had."""
    with catalog.database.writing() as session:
        return catalog.leases._take(session, job_id, owner, lease_seconds)


def let_expire(catalog: Catalog, claim: Claim) -> None:
    """The lease is over as from now, however busy the machine is."""
    catalog.leases.heartbeat(Claim(claim.job, claim.owner, claim.attempt, -1.0))
