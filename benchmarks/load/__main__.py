"""The command `python -m benchmarks.load`: needs the extra `load` (locust)."""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.load.system import STREAMED_ROWS, System, running_system

_HERE = Path(__file__).parent
_RESULTS = _HERE.parent / "results"
_STATUS_LIMIT_MS = 150.0


def main() -> int:
    """Runs the load. Returns: 0 all is within its limits, 1 something is not, 2 wrong usage."""
    given = _arguments()
    if find_spec("locust") is None:
        print("locust is not installed: pip install -e '.[load]'", file=sys.stderr)
        return 2
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.cores])
    with tempfile.TemporaryDirectory(prefix="gcvae-load-") as name:
        folder = Path(name)
        with running_system(folder, given.streamers) as system:
            print(
                f"{given.pollers} pollers, {given.samplers} samplers and {given.streamers} who "
                f"stream {STREAMED_ROWS:,} rows each, for {given.seconds} s"
            )
            calls, measured = _drive(system, folder, given)
            after = system.job_status()
    document = judge(given, calls, after, version("locust")) | measured
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps(document, indent=1) + "\n")
    print(_table(document), f"-> {given.output}", sep="\n")
    return 0 if document["passed"] else 1


def _drive(
    system: System, folder: Path, given: argparse.Namespace
) -> tuple[list[dict[str, str]], dict[str, object]]:
    """Run the clients; a line for each kind of call, and what was measured beside."""
    from benchmarks.load.measures import Measures  # psutil comes with locust

    users = given.pollers + given.samplers + given.streamers
    command = [sys.executable, "-m", "locust", "-f", str(_HERE / "locustfile.py"), "--headless"]
    command += ["-u", str(users), "-r", str(users / 10), "-t", f"{given.seconds + 10}s"]
    command += ["--reset-stats", "--only-summary", "--csv", str(folder / "load")]
    command += ["--host", system.url, "--exit-code-on-error", "0"]
    told = {
        "LOAD_JOB": system.job_id,
        "LOAD_MODEL": system.model_id,
        "LOAD_SAMPLE": system.sample_id or "",
        "LOAD_POLLERS": str(given.pollers),
        "LOAD_SAMPLERS": str(given.samplers),
        "LOAD_STREAMERS": str(given.streamers),
        "LOAD_SAMPLING_SECONDS": str(given.sampling_seconds),
    }
    before, began = Measures.take(system.url, system.server_pid), os.times()
    subprocess.run(command, env=os.environ | told, check=True, stdout=subprocess.DEVNULL)
    ended = os.times()
    clients = ended.children_user + ended.children_system
    clients -= began.children_user + began.children_system
    measured = Measures.take(system.url, system.server_pid).since(before, clients)
    with (folder / "load_stats.csv").open() as file:
        return list(csv.DictReader(file)), measured


def judge(
    given: argparse.Namespace, calls: list[dict[str, str]], job_status: str, locust: str
) -> dict[str, Any]:
    """The result document: figures of each kind of call, and whether all is within its limits.

    Args:
        calls: lines of locust's statistics.
        job_status: of the job that was to train all the time.
        locust: its version.
    """
    figures = {call["Name"]: _figures(call) for call in calls if call["Name"] != "Aggregated"}
    errors = sum(each["errors"] for each in figures.values())
    answered = {name for name, figure in figures.items() if figure["requests"]}
    clients = {"status": given.pollers, "sample": given.samplers, "stream": given.streamers}
    passed = (
        errors == 0
        and (figures["status"]["p99_ms"] or math.inf) < _STATUS_LIMIT_MS
        and job_status == "running"
        and answered >= {name for name, n_clients in clients.items() if n_clients}
    )
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": version("gcvae"),
        "locust": locust,
        "cores": len(os.sched_getaffinity(0)),
        "load_average_before": given.load_average,
        "pollers": given.pollers,
        "samplers": given.samplers,
        "streamers": given.streamers,
        "sampling_seconds": given.sampling_seconds,
        "seconds": given.seconds,
        "status_p99_limit_ms": _STATUS_LIMIT_MS,
        "job_that_trains": job_status,
        "calls": figures,
        "passed": passed,
        "note": given.note,
    }


def _figures(call: dict[str, str]) -> dict[str, float | None]:
    """Of one kind of call; times are None where none was answered in the seconds measured."""
    return {
        "requests": int(call["Request Count"]),
        "errors": int(call["Failure Count"]),
        "per_second": round(float(call["Requests/s"]), 2),
        "p50_ms": _milliseconds(call["50%"]),
        "p95_ms": _milliseconds(call["95%"]),
        "p99_ms": _milliseconds(call["99%"]),
        "max_ms": _milliseconds(call["Max Response Time"]),
    }


def _milliseconds(text: str) -> float | None:
    return None if text == "N/A" else round(float(text), 1)


def _table(document: dict[str, Any]) -> str:
    """The figures, a line for each kind of call."""
    lines = ["call              requests  errors     /s   p50 ms   p95 ms   p99 ms   max ms"]
    for name, of in document["calls"].items():
        lines.append(
            f"{name:16} {of['requests']:9} {of['errors']:7} {of['per_second']:6.1f} "
            + " ".join(
                f"{'–' if of[time] is None else round(of[time]):>8}"
                for time in ("p50_ms", "p95_ms", "p99_ms", "max_ms")
            )
        )
    lag = document["event_loop_lag_at_most_ms"]
    lines.append(
        f"{document['api_cpu_ms_per_look']} ms of the API's processor time for each look; "
        f"event loop late by at most {lag['p50']} ms (p50), {lag['p99']} ms (p99)"
    )
    spent = document["cpu_seconds"].items()
    lines.append("CPU seconds: " + ", ".join(f"{name} {seconds}" for name, seconds in spent))
    verdict = "within" if document["passed"] else "NOT within"
    lines.append(
        f"{verdict} the limits: no error, p99 of status under {_STATUS_LIMIT_MS:.0f} ms, "
        f"and a job that trains (it is {document['job_that_trains']})"
    )
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--seconds", type=int, default=300, help="after 10 s to begin (300)")
    parser.add_argument("--pollers", type=int, default=200, help="one look a second each (200)")
    parser.add_argument("--samplers", type=int, default=10, help="1,000 rows at a time (10)")
    parser.add_argument(
        "--streamers",
        type=int,
        default=0,
        help="read 10,000,000 rows each, and have as many drawn (0)",
    )
    parser.add_argument(
        "--sampling-seconds",
        type=float,
        default=0.0,
        help="from one draw of a sampler to its next (0: as soon as it has the rows)",
    )
    parser.add_argument("--cores", type=int, default=2, help="for clients and system together (2)")
    parser.add_argument("--note", default="", help="what stands beside the figures")
    today = datetime.now(UTC).date().isoformat()
    parser.add_argument("--output", type=Path, default=_RESULTS / f"load-{today}.json")
    given = parser.parse_args()
    given.load_average = round(os.getloadavg()[0], 1)
    return given


if __name__ == "__main__":
    sys.exit(main())
