"""The short form of `make test-api`: sequences of calls, with data allowed and not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import requests

from tests.abuse.api_calls import Campaign
from tests.abuse.findings import Findings
from tests.running_service import Running


@pytest.mark.slow
def test_no_call_of_a_sequence_is_answered_by_what_the_document_does_not_say(
    start: Callable[..., Running],
) -> None:
    service, findings = start(), Findings()  # of its own: what others made could be deleted
    with requests.Session() as session:
        campaign = Campaign(service.url, {}, 0, findings, session)
        campaign.sequences(n_sequences=10, n_steps=10)
    assert findings.failures == {}
    assert findings.n_inputs >= 50
