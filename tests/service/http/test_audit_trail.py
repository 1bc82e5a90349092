"""Every call that changes something has a line in the audit log, in the order of the answers."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from catalog.access.audit import Audit
from catalog.database.engine import Database
from catalog.database.migrate import upgrade
from catalog.records import AuditedAction, AuditEntry
from service.access import SAFE_METHODS
from service.http.audit_trail import AuditTrail
from tests.running_service import Running


class _SlowAtFirst(Audit):
    """Of which the first line takes its time, as one does that waits for the database."""

    is_first = True

    def append(self, action: AuditedAction) -> AuditEntry:
        is_first, self.is_first = self.is_first, False
        if is_first:
            time.sleep(0.3)
        return super().append(action)


def _let_in(app: ASGIApp) -> ASGIApp:
    async def of_somebody(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"] = {"workspace": "default", "actor": "key_1", "request_id": "1"}
        await app(scope, receive, send)

    return of_somebody


async def _ask(app: ASGIApp, path: str) -> None:
    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: object) -> None:
        pass

    asked = {"type": "http", "method": "POST", "path": path, "headers": [], "query_string": b""}
    await app(asked, receive, send)


def test_a_line_that_takes_its_time_stays_before_those_that_came_later(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalog.db"
    upgrade(url)
    database = Database(url)
    audit = _SlowAtFirst(database)

    async def answer(request: Request) -> Response:
        return Response(status_code=201)

    route = Route("/v1/things/{number}", answer, methods=["POST"])
    app = _let_in(AuditTrail(Starlette(routes=[route]), audit))

    async def ask_all() -> None:
        asked = []
        for number in range(4):
            asked.append(asyncio.create_task(_ask(app, f"/v1/things/{number}")))
            await asyncio.sleep(0.02)
        await asyncio.gather(*asked)

    asyncio.run(ask_all())
    assert [entry.subject for entry in audit.entries()] == [f"/v1/things/{n}" for n in range(4)]
    assert audit.first_break() is None
    database.close()


def test_every_call_that_changes_something_has_a_line(service: Running) -> None:
    document = service.http.get("/openapi.json").json()["paths"].items()
    calls = [(m.upper(), path) for path, item in document for m in item if m != "get"]
    assert len(calls) >= 40
    assert not {method for method, _ in calls} & set(SAFE_METHODS)
    asked = {}
    for method, path in calls:
        answer = service.http.request(method, re.sub(r"{\w+}", "none", path), json={})
        asked[answer.headers["X-Request-ID"]] = (f"{method} {path}", answer.status_code)
    told: dict[str | None, tuple[str, int]] = {}
    until = time.monotonic() + 20
    while not asked.keys() <= told.keys():  # a line is written after the answer
        assert time.monotonic() < until, [c for r, c in asked.items() if r not in told]
        entries = service.catalog.audit.entries()
        told = {entry.request_id: (entry.action, entry.status) for entry in entries}
    assert {request: told[request] for request in asked} == asked
