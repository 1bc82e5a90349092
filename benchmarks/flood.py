"""What a flood from one key costs another: p99 of a calm key's polls, without and with it in turns.

    python -m benchmarks.flood [--rate 10000] [--seconds 20] [--rounds 3] [-o FILE]

The API runs in a process of its own, with keys of two workspaces. The calm key asks for its jobs 20
times a second. The flood comes from another process over 16 connections, at its own pace whatever
the answers: of polls with a key in force, of keys that nobody made, and of small tables.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.running_service import running_service
from catalog import Catalog
from catalog.database.migrate import upgrade
from catalog.records import Scope
from service.settings import ServiceSettings

_RESULTS = Path(__file__).parent / "results"
_POLLS_PER_SECOND = 20
_CONNECTIONS = 16
_LAST_SECONDS = 2.0
"""After the polls, until what the flood still has under way is given up."""
_WRONG_KEY = "gcv_" + "0" * 26 + "_" + "u" * 43
_TABLE = b"a,b\n" + b"".join(b"%d,%d\n" % (i % 9, i % 2) for i in range(60))
FLOODS = ("polls", "wrong keys", "uploads")


def main() -> int:
    """Runs the rounds. Returns: 0 where no flood raises the p99 by more than half, else 1."""
    given = _arguments()
    if given.flood:  # the other process
        asyncio.run(_flood(given.url, given.key, given.flood, given.rate / 60, given.seconds))
        return 0
    with tempfile.TemporaryDirectory(prefix="gcvae-flood-") as name:
        found = _rounds(Path(name), given)
    worst = max(line["ratio"] for line in found)
    document = {
        "made_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%MZ}",
        "rate_per_minute": given.rate,
        "seconds_each": given.seconds,
        "rounds": given.rounds,
        "floods": found,
    }
    given.output.write_text(json.dumps(document, indent=1) + "\n")
    for line in found:
        print(
            f"{line['flood']:12} p99 {line['quiet_p99_ms']:.1f} ms without, {line['p99_ms']:.1f} ms"
            f" with: {line['ratio']:.2f} x; p50 {line['quiet_p50_ms']:.1f} and {line['p50_ms']:.1f}"
            f" ms; answers {line['answers']}"
        )
    return 0 if worst <= 1.5 else 1


def _rounds(folder: Path, given: argparse.Namespace) -> list[dict[str, Any]]:
    with _api(folder) as (url, keys):
        quiet: list[float] = []
        loud: dict[str, list[float]] = {flood: [] for flood in FLOODS}
        answers: dict[str, Counter[str]] = {flood: Counter() for flood in FLOODS}
        _polled(url, keys["calm"], 3.0)
        for _ in range(given.rounds):
            quiet += _polled(url, keys["calm"], given.seconds)
            for flood in FLOODS:
                key = _WRONG_KEY if flood == "wrong keys" else keys["loud"]
                with _flooding(url, key, flood, given) as process:
                    time.sleep(2.0)
                    loud[flood] += _polled(url, keys["calm"], given.seconds)
                answers[flood] += Counter(json.loads(process.communicate()[0]))
    calm = np.percentile(quiet, (50, 99))
    return [_line(flood, calm, loud[flood], answers[flood]) for flood in FLOODS]


def _line(
    flood: str, quiet: np.ndarray[Any, Any], loud: list[float], answers: Counter[str]
) -> dict[str, Any]:
    median, most = np.percentile(loud, (50, 99))
    return {
        "flood": flood,
        "quiet_p50_ms": 1e3 * quiet[0],
        "quiet_p99_ms": 1e3 * quiet[1],
        "p50_ms": 1e3 * median,
        "p99_ms": 1e3 * most,
        "ratio": float(most / quiet[1]),
        "polls": len(loud),
        "answers": dict(answers),
    }


def _polled(url: str, key: str, seconds: float) -> list[float]:
    """Seconds that each poll took, at an even pace."""
    taken: list[float] = []
    began_at = time.perf_counter()
    with httpx.Client(base_url=url, headers=_bearer(key), timeout=30) as http:
        for number in range(int(seconds * _POLLS_PER_SECOND)):
            time.sleep(max(0.0, began_at + number / _POLLS_PER_SECOND - time.perf_counter()))
            asked_at = time.perf_counter()
            http.get("/v1/jobs").raise_for_status()
            taken.append(time.perf_counter() - asked_at)
    return taken


async def _flood(url: str, key: str, flood: str, per_second: float, seconds: float) -> None:
    """Send requests at a pace, whatever the answers; print how many had which status."""
    answers: Counter[str] = Counter()
    limits = httpx.Limits(max_connections=_CONNECTIONS)
    method, path = ("POST", "/v1/datasets") if flood == "uploads" else ("GET", "/v1/jobs")
    headers = _bearer(key) | {"Content-Type": "text/csv"}
    body = _TABLE if flood == "uploads" else None

    async def send(http: httpx.AsyncClient) -> None:
        try:
            answer = await http.request(method, path, headers=headers, content=body)
            answers[str(answer.status_code)] += 1
        except httpx.TransportError as error:
            answers[type(error).__name__] += 1

    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=30) as http:
        began_at, sending = time.perf_counter(), set[asyncio.Task[None]]()
        for number in range(int(per_second * seconds)):
            await asyncio.sleep(max(0.0, began_at + number / per_second - time.perf_counter()))
            task = asyncio.create_task(send(http))
            sending.add(task)
            task.add_done_callback(sending.discard)
        if left := sending.copy():
            _, late = await asyncio.wait(left, timeout=_LAST_SECONDS)
            for task in late:  # nobody polls beside these any more
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
    print(json.dumps(answers))


@contextmanager
def _flooding(
    url: str, key: str, flood: str, given: argparse.Namespace
) -> Iterator[subprocess.Popen[str]]:
    asked = ["--flood", flood, "--url", url, "--key", key, "--rate", str(given.rate)]
    command = [sys.executable, "-m", "benchmarks.flood", *asked]
    command += ["--seconds", str(given.seconds + 6)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    yield process
    process.wait()


@contextmanager
def _api(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A running API and a key of each kind of its users."""
    database = ServiceSettings(home_dir=folder).database()
    upgrade(database)
    catalog = Catalog(database)
    keys = {n: catalog.keys.create(n, "", (Scope.READ, Scope.WRITE))[1] for n in ("calm", "loud")}
    catalog.close()
    with running_service(folder) as (url, _):
        yield url, keys


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flood", description=__doc__)
    parser.add_argument("--rate", type=int, default=10_000, help="requests a minute")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "-o", "--output", type=Path, default=_RESULTS / f"flood-{datetime.now(UTC):%Y-%m-%d}.json"
    )
    for name in ("--flood", "--url", "--key"):
        parser.add_argument(name, default="", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
