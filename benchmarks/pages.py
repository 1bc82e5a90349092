"""How soon the pages show, of a service with many records, and what a live one costs.

    python -m benchmarks.pages [--models 1000] [--jobs 10000] [--rounds 5] [-o FILE]

The API runs in a process of its own on SQLite, and Chromium headless on the same machine. A page is
there when its first row, or what stands for it, is seen. What a page costs is the API's processor
time over ten seconds, without it, with it, and with a script that asks for the job once a second.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import psutil
from playwright.sync_api import Page, sync_playwright
from sqlalchemy import insert

from benchmarks.running_service import running_service
from catalog import Catalog
from catalog.database.migrate import upgrade
from catalog.database.tables import JobRow, ModelRow
from catalog.ids import new_id
from catalog.job_kinds import JobKind, Queue
from catalog.records import DEFAULT_WORKSPACE, JobStatus, ModelStatus
from service.settings import ServiceSettings

_RESULTS = Path(__file__).parent / "results"
_SECONDS = 10.0
_PAGES = {
    "/": "h1",
    "/models": "tbody tr",
    "/models?search=model+77": "tbody tr",
    "/jobs": "tbody tr",
    "/jobs?status=failed": "tbody tr",
}


def main() -> int:
    """Measures, prints, and writes the results."""
    given = _arguments()
    with tempfile.TemporaryDirectory(prefix="gcvae-pages-") as name:
        folder = Path(name)
        live = _fill(folder, given.models, given.jobs)
        with running_service(folder) as (url, process), _browser() as page:
            found = {
                "made_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%MZ}",
                "models": given.models,
                "jobs": given.jobs,
                "rounds": given.rounds,
                "pages": [_shown(page, url, path, given.rounds) for path in _PAGES],
                "live_page": _cost_of_live_page(page, url, live, process),
            }
    given.output.write_text(json.dumps(found, indent=1) + "\n")
    for line in found["pages"]:
        times = f"first paint {line['paint_ms']:.0f} ms, rows {line['rows_ms']:.0f} ms"
        print(f"{line['path']:26} {times}")
    print(found["live_page"])
    return 0


def _fill(folder: Path, n_models: int, n_jobs: int) -> str:
    """Records without bytes; returns the id of a job that runs."""
    database = ServiceSettings(home_dir=folder).database()
    upgrade(database)
    catalog = Catalog(database)
    now = datetime.now(UTC)
    models = [_model(number, now) for number in range(n_models)]
    statuses = [JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED]
    jobs = [_job(number, statuses[number % 3], now) for number in range(n_jobs - 1)]
    live = _job(n_jobs, JobStatus.RUNNING, now)
    with catalog.database.writing() as session:
        session.execute(insert(ModelRow), models)
        session.execute(insert(JobRow), [*jobs, live])
    catalog.close()
    return str(live["id"])


def _model(number: int, now: datetime) -> dict[str, Any]:
    at = now - timedelta(minutes=number)
    record = {"bound_held_out": -12.5, "history": []}
    return {
        "id": new_id("mdl"), "workspace": DEFAULT_WORKSPACE, "name": f"model {number}",
        "status": ModelStatus.READY, "training": {"preset": "default"}, "record": record,
        "artifact_bytes": 400_000, "created_at": at,
    }  # fmt: skip


def _job(number: int, status: JobStatus, now: datetime) -> dict[str, Any]:
    at = now - timedelta(seconds=number)
    is_live = status is JobStatus.RUNNING
    return {
        "id": new_id("job"), "workspace": DEFAULT_WORKSPACE, "kind": JobKind.TRAIN, "spec": {},
        "n_shards": 0, "open_shards": 0, "queue": Queue.TRAIN, "priority": 0,
        "smaller_batch": False, "status": status, "attempt": 1, "attempts_since_checkpoint": 0,
        "sends": 1, "cancel_requested": False,
        "progress": {"phase": "training", "fraction": 0.4} if is_live else {"fraction": 1.0},
        "error": {"type": "x", "message": "it failed"} if status is JobStatus.FAILED else None,
        "version": 3, "queued_at": at, "created_at": at, "started_at": at,
        "finished_at": None if is_live else at,
    }  # fmt: skip


@contextmanager
def _browser() -> Iterator[Page]:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


def _shown(page: Page, url: str, path: str, rounds: int) -> dict[str, Any]:
    """Medians of the first paint and of the first row, each time with an empty cache."""
    paints, rows = [], []
    for _ in range(rounds):
        page.goto("about:blank")
        began_at = time.perf_counter()
        page.goto(url + path)
        page.locator(_PAGES[path]).first.wait_for()
        rows.append(1e3 * (time.perf_counter() - began_at))
        script = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
        paints.append(page.evaluate(script))
    return {"path": path, "paint_ms": median(paints), "rows_ms": median(rows), "most_ms": max(rows)}


def _cost_of_live_page(
    page: Page, url: str, job_id: str, process: subprocess.Popen[bytes]
) -> dict[str, float]:
    api = psutil.Process(process.pid)

    def cost(meanwhile: Callable[[], None]) -> float:
        before = sum(api.cpu_times()[:2])
        meanwhile()
        return 1e3 * (sum(api.cpu_times()[:2]) - before) / _SECONDS

    def poll() -> None:
        with httpx.Client(base_url=url) as http:
            for _ in range(int(_SECONDS)):
                http.get(f"/v1/jobs/{job_id}").raise_for_status()
                time.sleep(1.0)

    page.goto("about:blank")
    found = {"idle": cost(lambda: time.sleep(_SECONDS)), "script": cost(poll)}
    page.goto(f"{url}/jobs/{job_id}")
    page.get_by_role("progressbar").first.wait_for()
    found["page"] = cost(lambda: time.sleep(_SECONDS))
    return {f"{name}_cpu_ms_a_second": value for name, value in found.items()}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__)
    parser.add_argument("--models", type=int, default=1_000)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    today = datetime.now(UTC)
    parser.add_argument(
        "-o", "--output", type=Path, default=_RESULTS / f"pages-{today:%Y-%m-%d}.json"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
