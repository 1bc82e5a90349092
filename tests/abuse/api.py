"""The long campaign of calls: `python -m tests.abuse.api --calls 20000` (`make test-api`)."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import requests

from tests.abuse.api_calls import Campaign
from tests.abuse.findings import Findings
from tests.running_service import Running, running, settings_in, train, work

_TABLE = b"mpg,cylinders,fuel,sold\n" + b"".join(
    b"%d.5,%d,%s,%s\n" % (15 + i % 17, 4 + 2 * (i % 3), fuel, (b"yes", b"no")[i % 2])
    for i, fuel in enumerate((b"petrol", b"diesel", b"", b"petrol") * 25)
)
_CSV = {"Content-Type": "text/csv"}
_ROWS: dict[str, Any] = {"content": _TABLE, "headers": _CSV}
_LONG: dict[str, dict[str, Any]] = {
    "samples": {"json": {"rows": 30}},
    "report": {"json": {}},
    "scores": _ROWS,
    "imputations": _ROWS,
    "encodings": _ROWS,
}


def made(service: Running) -> dict[str, list[str]]:
    """One record of every kind, whose job is done; their ids by the names of parameters."""
    model = train(service, _TABLE)
    results, jobs = [], [model["job_id"]]
    for name, body in _LONG.items():
        answer = service.http.post(f"/v1/models/{model['id']}/{name}", **body)
        assert answer.status_code == 202, answer.text
        work(service, answer.json()["job_id"])
        results.append(answer.json()["id"])
        jobs.append(answer.json()["job_id"])
    return {
        "model_id": [model["id"]],
        "dataset_id": [model["dataset_id"]],
        "holdout_dataset_id": [model["dataset_id"]],
        "result_id": results,
        "job_id": jobs,
    }


def main() -> int:
    """Call, and print what came of it as JSON; 1 where something is wrong."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--calls", type=int, default=20_000)
    asked.add_argument("--seed", type=int, default=0)
    chosen = asked.parse_args()
    begun, findings = time.monotonic(), Findings()
    with tempfile.TemporaryDirectory(prefix="gcvae-api-") as folder:
        limits = {
            "max_inline_sample_rows": 20,
            "max_inline_score_rows": 20,
            "max_sample_rows": 100_000,
            "max_queued_jobs": 1_000_000,  # nobody works meanwhile
            "preload_torch": True,
        }
        with running(settings_in(Path(folder), **limits)) as service, requests.Session() as session:
            campaign = Campaign(service.url, made(service), chosen.seed, findings, session)
            campaign.single_calls(chosen.calls // 2)
            n_single = findings.n_inputs
            while findings.n_inputs < chosen.calls:
                print(f"{findings.n_inputs} calls", file=sys.stderr, flush=True)
                if service.http.get(f"/v1/models/{campaign.ids['model_id'][0]}").is_error:
                    campaign.ids = made(service)  # sequences delete what they find
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
