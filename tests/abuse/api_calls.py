"""Calls of every operation of the OpenAPI document, with data that it allows and that it does not,
by themselves and in sequences that use what was answered before.

No answer may be a 5xx or of an undocumented status, kind or form, and every error is a problem
document. Ids are often those of real records, so that calls come further than "not found".
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.schemas import APIOperation, BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from service.http.problems import KINDS
from tests.abuse.findings import Findings

Call = Callable[[Any], requests.Response]

_CALL_SECONDS = 120
_REAL_SHARE = 0.7
_MEMBERS = {"type", "title", "status", "detail", "instance", "request_id"}
_OF_FRAMEWORK = {"bad-request", "not-found", "method-not-allowed"}
_TYPES = {kind.type for kind in KINDS.values()} | {
    f"urn:gcvae:problem:{name}" for name in _OF_FRAMEWORK
}


def every_error_is_a_problem(_: Any, response: Any, case: schemathesis.Case) -> bool | None:
    """A check: an answer of 400 and more is a problem document of a kind that is known."""
    if response.status_code < 400:
        return None
    said = response.headers.get("content-type", [""])[0]
    assert said == "application/problem+json", f"an error of the kind {said!r}"
    document = json.loads(response.content)
    assert document.keys() >= _MEMBERS, f"a problem without {_MEMBERS - document.keys()}"
    assert document["status"] == response.status_code
    assert document["type"] in _TYPES, f"an unknown problem: {document['type']}"
    return None


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    every_error_is_a_problem,
]


@dataclass
class Campaign:
    """Calls of one service.

    Args:
        ids: of real records, by the names of parameters and of members of bodies.
        number: the seed.
    """

    url: str
    ids: dict[str, list[str]]
    number: int
    findings: Findings
    session: requests.Session

    def single_calls(self, n_calls: int) -> None:
        """So many calls at least, spread over all operations, half of them with negative data.

        An operation that no call could be made of is a failure.
        """
        operations = [found.ok() for found in self._schema().get_all_operations()]
        each = -(-n_calls // (2 * len(operations)))
        for operation in operations:
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                self._call_often(operation, mode, each)
        called = {subject.rpartition(" ")[0] for subject in self.findings.outcomes}
        for operation in operations:
            if operation.label not in called:
                self.findings.fail(f"{operation.label}: never called")

    def sequences(self, n_sequences: int, n_steps: int) -> None:
        """So many sequences of calls, in which ids and values of answers are used."""
        campaign = self
        # A stream of events ends when its job does, and nobody works here.
        schema = self._schema().exclude(path_regex="^/v1/jobs/.*(events|retry)$")

        class Machine(schema.as_state_machine()):  # type: ignore[misc]
            def call(self, case: schemathesis.Case, **_: Any) -> Any:
                return campaign.called(case)

            def validate_response(self, response: Any, case: Any, **_: Any) -> None:
                campaign.judge(case, response, "sequence")

        chosen = settings(
            max_examples=1,  # each in a run of its own: answers depend on what others have made
            stateful_step_count=n_steps,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=[*HealthCheck],
        )
        for number in range(n_sequences):
            seed(f"{self.number} {number}")(Machine)
            Machine.run(settings=chosen)

    def _schema(self) -> BaseSchema:
        return schemathesis.openapi.from_url(f"{self.url}/openapi.json")

    def _call_often(self, operation: APIOperation, mode: GenerationMode, n_calls: int) -> None:
        draw = random.Random(f"{self.number} {operation.label} {mode}")

        @seed(self.number)
        @settings(
            max_examples=n_calls,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=[*HealthCheck],
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case: schemathesis.Case) -> None:
            if draw.random() < _REAL_SHARE:
                self._use_real_ids(case, draw)
            self.judge(case, self.called(case), mode.value)

        try:
            ask()
        except Exception as error:  # the document allows nothing that could be sent
            if type(error).__name__ not in ("Unsatisfiable", "FailedHealthCheck"):
                self.findings.fail(f"{operation.label}: {type(error).__name__}", error=error)

    def _use_real_ids(self, case: schemathesis.Case, draw: random.Random) -> None:
        """Put real ids where the operation asks for one; what is deleted stays made up."""
        if case.operation.method.upper() == "DELETE":
            return
        for place in (case.path_parameters, case.query, case.body):
            if isinstance(place, dict):
                for name in set(place) & set(self.ids):
                    place[name] = draw.choice(self.ids[name])

    def called(self, case: schemathesis.Case) -> Any:
        """The answer to a call."""
        return case.call(session=self.session, timeout=_CALL_SECONDS)

    def judge(self, case: schemathesis.Case, response: Any, how: str) -> None:
        """Count an answer, and note what is wrong with it."""
        label = case.operation.label
        self.findings.count(f"{label} {how}", str(response.status_code))
        try:
            case.validate_response(response, checks=CHECKS)
        except FailureGroup as group:
            for error in group.exceptions:
                self._note(case, response, error)
        except (Failure, AssertionError) as error:
            self._note(case, response, error)

    def _note(self, case: schemathesis.Case, response: Any, error: BaseException) -> None:
        what = f"{case.operation.label}: {response.status_code}: {type(error).__name__}"
        self.findings.fail(
            what, error=error, call=case.as_curl_command(), answer=response.content[:300]
        )
