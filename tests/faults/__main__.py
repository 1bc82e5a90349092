"""The command `python -m tests.faults`: the long campaign, on real servers and processes."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tests.faults.campaign import Plan, run
from tests.faults.deployment import Servers
from tests.faults.injections import FAULTS
from tests.faults.report import document, lines
from tests.servers.servers import PostgresServer, RedisServer, S3Server
from tests.servers.store_proxy import StoreProxy

_RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
_SEED = 20261121


def main() -> int:
    """Run the campaigns. Returns: 0 where everything ended right, else 1."""
    given = _arguments()
    # Whoever ends the campaign ends its servers: the contexts below are left as on any exit.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with ExitStack() as stack:
        s3 = stack.enter_context(S3Server())
        servers = Servers(
            stack.enter_context(PostgresServer()),
            stack.enter_context(RedisServer()),
            s3,
            stack.enter_context(StoreProxy(s3.port)),
        )
        outcomes = []
        for plan in _plans(given):
            outcomes.append(run(plan, servers, logs=_logs(given, plan)))
            print("\n".join(lines(outcomes[-1:])), flush=True)
    print("\n".join(lines(outcomes)))
    name = f"faults-{datetime.now(UTC):%Y-%m-%d}.json"
    output = _RESULTS / name if given.output is None else given.output
    output.write_text(json.dumps(document(outcomes), indent=1) + "\n")
    print(f"{output} is written")
    return 0 if all(outcome.is_right for outcome in outcomes) else 1


def _plans(given: argparse.Namespace) -> list[Plan]:
    """A campaign on the stand-in, whose jobs start fast, and one on the real library."""
    real_faults = round(given.faults * given.real_share)
    real_jobs = round(given.jobs * given.real_share)
    fast = Plan(
        name="fast",
        faults=given.faults - real_faults,
        jobs=given.jobs - real_jobs,
        seed=given.seed,
        grace_seconds=given.grace_seconds,
        with_stand_in=True,
        only=given.only,
    )
    real = replace(
        fast,
        name="real",
        faults=real_faults,
        jobs=real_jobs,
        grace_seconds=2 * given.grace_seconds,
        with_stand_in=False,
        pause_seconds=2.5,
    )
    return [plan for plan in (fast, real) if plan.faults]


def _logs(given: argparse.Namespace, plan: Plan) -> Path | None:
    return None if given.logs is None else given.logs / plan.name


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=_SEED)
    parser.add_argument(
        "--real-share", type=float, default=0.2, help="of faults and jobs: on the real library"
    )
    parser.add_argument(
        "--grace-seconds",
        type=float,
        default=30.0,
        help="twice as long after the last fault everything must be right",
    )
    parser.add_argument("--only", default="", help="inject only faults whose names hold this")
    parser.add_argument("--output", type=Path, help="JSON; benchmarks/results/ where not given")
    parser.add_argument("--logs", type=Path, help="folder to keep the processes' logs in")
    given = parser.parse_args()
    if not any(given.only in name for name in FAULTS):
        parser.error(f"--only {given.only!r} is in no fault's name: {', '.join(FAULTS)}")
    return given


if __name__ == "__main__":
    sys.exit(main())
