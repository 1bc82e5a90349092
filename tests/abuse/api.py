"""The long campaign of calls: `python -m tests.abuse.api --calls 20000` (`make test-api`)."""

from __future__ import annotations

import argparse
import secrets
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import requests

from tests.abuse.api_calls import Campaign
from tests.abuse.findings import Findings
from tests.running_service import OUTSIDE, Running, running, settings_in, train, work
from tests.servers.webhook_receiver import receiver

_TABLE = b"mpg,cylinders,fuel,sold\n" + b"".join(
    b"%d.5,%d,%s,%s\n" % (15 + i % 17, 4 + 2 * (i % 3), fuel, (b"yes", b"no")[i % 2])
    for i, fuel in enumerate((b"petrol", b"diesel", b"", b"petrol") * 25)
)
_CSV = {"Content-Type": "text/csv"}
_ROWS: dict[str, Any] = {"content": _TABLE, "headers": _CSV}
_LONG: dict[str, dict[str, Any]] = {
    "samples": {"json": {"rows": 30, "format": "parquet"}},
    "report": {"json": {}},
    "scores": _ROWS,
    "imputations": _ROWS,
    "encodings": _ROWS,
}


def limits_in(folder: Path) -> dict[str, Any]:
    """Settings of the service that is called, and the database that its connections lead to."""
    (folder / "files").mkdir()
    with closing(sqlite3.connect(folder / "files" / "shop.sqlite")) as shop:
        shop.execute("CREATE TABLE orders AS SELECT 1 AS a, 'x' AS b")
        shop.commit()
    return OUTSIDE | {
        "connection_folder": folder / "files",
        "max_inline_sample_rows": 20,
        "max_inline_score_rows": 20,
        "max_sample_rows": 100_000,
        "max_queued_jobs": 1_000_000,  # nobody works meanwhile
        "preload_torch": True,
    }


def made(service: Running, outside: str) -> dict[str, list[str]]:
    """One record of every kind, whose job is done; their ids by the names of parameters.

    Args:
        outside: URL of a receiver of webhooks.
    """
    number = secrets.randbelow(10**9)  # calls cap the privacy loss of a table for good
    model = train(service, _TABLE + b"%d.5,4,petrol,no\n" % number)
    results, jobs = [], [model["job_id"]]
    for name, body in _LONG.items():
        answer = service.http.post(f"/v1/models/{model['id']}/{name}", **body)
        assert answer.status_code == 202, answer.text
        work(service, answer.json()["job_id"])
        results.append(answer.json()["id"])
        jobs.append(answer.json()["job_id"])

    def one(path: str, **body: Any) -> str:
        answer = service.http.post(f"/v1/{path}", json=body)
        assert answer.status_code in (201, 202), answer.text
        return str(answer.json()["id"])

    tag, dataset = f"shop-{number}", model["dataset_id"]
    schedule = one("schedules", name=tag, cron="0 3 1 1 *", dataset_id=dataset)
    webhook = one("webhooks", url=f"{outside}/{number}")
    return {
        "model_id": [model["id"]],
        "dataset_id": [dataset],
        "holdout_dataset_id": [dataset],
        "result_id": results,
        "job_id": jobs,
        "connection_id": [one("connections", name=tag, url="sqlite:///shop.sqlite")],
        "connection": [tag],
        "table": ["orders", tag],
        "webhook_id": [webhook],
        "delivery_id": [one(f"webhooks/{webhook}/ping")],
        "schedule_id": [schedule],
        "run_id": [one(f"schedules/{schedule}/runs")],
        "url": [outside],
    }


def main() -> int:
    """Call, and print what came of it as JSON; 1 where something is wrong."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--calls", type=int, default=20_000)
    asked.add_argument("--seed", type=int, default=0)
    chosen = asked.parse_args()
    begun, findings = time.monotonic(), Findings()
    with tempfile.TemporaryDirectory(prefix="gcvae-api-") as folder:
        place = Path(folder)
        with (
            receiver() as outside,
            running(settings_in(place, **limits_in(place))) as service,
            requests.Session() as session,
        ):
            ids = made(service, outside.url)
            campaign = Campaign(service.url, ids, chosen.seed, findings, session)
            campaign.single_calls(chosen.calls // 2)
            n_single = findings.n_inputs
            while findings.n_inputs < chosen.calls:
                print(f"{findings.n_inputs} calls", file=sys.stderr, flush=True)
                if service.http.get(f"/v1/models/{campaign.ids['model_id'][0]}").is_error:
                    campaign.ids = made(service, outside.url)  # sequences delete what they find
                campaign.sequences(n_sequences=25, n_steps=20)
                campaign.number += 1
            answers = service.http.get("/readyz").status_code == 200
            if not answers:
                findings.fail("the service is not ready any more")
    seconds = round(time.monotonic() - begun)
    print(findings.report(seed=chosen.seed, single_calls=n_single, seconds=seconds))
    return 1 if findings.failures else 0


if __name__ == "__main__":
    sys.exit(main())
