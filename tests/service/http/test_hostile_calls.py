"""The short form of `make test-api`: every operation, and sequences, with data allowed and not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from tests.abuse.api import limits_in, made
from tests.abuse.api_calls import Campaign
from tests.abuse.findings import Findings
from tests.running_service import Running
from tests.servers.webhook_receiver import receiver


@pytest.mark.slow
def test_no_call_is_answered_by_what_the_document_does_not_say(
    start: Callable[..., Running], tmp_path: Path
) -> None:
    service, findings = start(**limits_in(tmp_path)), Findings()  # of its own: calls delete
    with receiver() as outside, requests.Session() as session:
        campaign = Campaign(service.url, made(service, outside.url), 0, findings, session)
        campaign.single_calls(1)
        campaign.sequences(n_sequences=10, n_steps=10)
    assert findings.failures == {}
    document = service.http.get("/openapi.json").json()["paths"].items()
    operations = {f"{method.upper()} {path}" for path, item in document for method in item}
    assert {subject.rpartition(" ")[0] for subject in findings.outcomes} >= operations
    parameters = {word[1:-1] for path, _ in document for word in path.split("/") if "{" in word}
    assert parameters <= set(campaign.ids), "of each kind there is a real record to call"
