"""The table of a campaign, for people, and the same for programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from tests.faults.campaign import Outcome
from tests.faults.deployment import LEASE_SECONDS
from tests.faults.injections import DEAD_WORKERS, FAULTS
from tests.faults.observer import Hit


def lines(outcomes: Sequence[Outcome]) -> Iterable[str]:
    """The table fault × number × outcome × time to recover, and what was found at the end."""
    yield (
        f"{'fault':48} {'number':>6} {'jobs hit':>8} {'recovered':>9} {'median s':>8} {'most s':>7}"
    )
    for row in rows(outcomes):
        seconds = [f"{row[name]:.1f}" if row[name] is not None else "-" for name in _SECONDS]
        yield (
            f"{row['fault']:48} {row['number']:6} {row['jobs_hit']:8} {row['recovered']:9} "
            f"{seconds[0]:>8} {seconds[1]:>7}"
        )
    leases = recovery_of_dead_workers(outcomes)
    if leases is not None:
        lease = f"leases of {LEASE_SECONDS} s"
        yield f"median time to recover after a dead worker: {leases:.2f} {lease}"
    for outcome in outcomes:
        yield from _told(outcome)


def document(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Everything, as JSON."""
    return {
        "seed": outcomes[0].plan.seed,
        "lease_seconds": LEASE_SECONDS,
        "faults": rows(outcomes),
        "dead_worker_recovery_median_leases": recovery_of_dead_workers(outcomes),
        "campaigns": [
            {
                "name": outcome.plan.name,
                "library": "stand-in" if outcome.plan.with_stand_in else "real",
                "faults": len(outcome.hits),
                "jobs": outcome.n_jobs,
                "jobs_before_last_fault": outcome.n_jobs_before_last_fault,
                "workers": outcome.plan.n_workers,
                "grace_seconds": outcome.plan.grace_seconds,
                "seconds": round(outcome.seconds, 1),
                "slowest_503_seconds": round(outcome.slowest_refusal_seconds, 2),
                "verdict": vars(outcome.verdict),
                "trespasses": outcome.n_trespasses,
                "troubles": outcome.troubles,
                "is_right": outcome.is_right,
            }
            for outcome in outcomes
        ],
    }


_SECONDS = ("median_recovery_seconds", "most_recovery_seconds")


def rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """A row for each kind of fault."""
    by_fault: dict[str, list[Hit]] = defaultdict(list)
    for hit in (hit for outcome in outcomes for hit in outcome.hits):
        by_fault[hit.fault].append(hit)
    return [_row(fault, by_fault[fault]) for fault in FAULTS if fault in by_fault]


def recovery_of_dead_workers(outcomes: Sequence[Outcome]) -> float | None:
    """Median, in leases, from a worker's death in mid-job to the next attempt's first sign."""
    seconds = [
        found
        for outcome in outcomes
        for hit in outcome.hits
        if hit.fault in DEAD_WORKERS and hit.victims
        if (found := hit.recovery_seconds()) is not None
    ]
    return round(median(seconds) / LEASE_SECONDS, 3) if seconds else None


def _row(fault: str, hits: list[Hit]) -> dict[str, Any]:
    seconds = [found for hit in hits if (found := hit.recovery_seconds()) is not None]
    return {
        "fault": fault,
        "number": len(hits),
        "jobs_hit": sum(len(hit.victims) for hit in hits),
        "recovered": len(seconds),
        "median_recovery_seconds": round(median(seconds), 2) if seconds else None,
        "most_recovery_seconds": round(max(seconds), 2) if seconds else None,
    }


def _told(outcome: Outcome) -> Iterable[str]:
    plan = outcome.plan
    library = "stand-in for the library" if plan.with_stand_in else "real library"
    jobs = f"{outcome.n_jobs} jobs ({outcome.n_jobs_before_last_fault} before the last fault)"
    slowest = f"slowest 503 {outcome.slowest_refusal_seconds:.1f} s"
    yield (
        f"{plan.name} ({library}): {len(outcome.hits)} faults, {jobs}, seed {plan.seed}, "
        f"{outcome.seconds:.0f} s, {slowest}"
    )
    yield f"  {outcome.n_trespasses} calls of one workspace for another's records"
    for name, found in vars(outcome.verdict).items():
        yield f"  {name.replace('_', ' ')}: {len(found)}"
        yield from (f"    {item}" for item in found)
    yield from (f"  {trouble}" for trouble in outcome.troubles)
    yield f"  {'everything is right' if outcome.is_right else 'NOT RIGHT'}"
