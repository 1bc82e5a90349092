"""With keys, nobody comes in without one, and nobody sees another workspace's records."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from catalog.records import EventType, Scope
from catalog.schedules.times import checked_times
from service.errors import TooManyRequestsError
from service.http.rate_limits import RateLimits
from service.keyring import FRESH_SECONDS
from tests.running_service import Running, assert_problem, running, settings_in, train
from tests.wordings import same_wording

TABLE = b"a,b\n" + b"".join(b"%d,%d\n" % (i % 9, i % 2) for i in range(60))
CSV = {"Content-Type": "text/csv"}
ALL = list(Scope)


@dataclass(frozen=True)
class Guarded:
    """A service with two workspaces, and what lies in one of them."""

    service: Running
    ours: httpx.Client
    theirs: httpx.Client
    ids: dict[str, str]


def _client(service: Running, workspace: str, scopes: list[Scope], **options: Any) -> httpx.Client:
    _, written = service.catalog.keys.create(workspace, "", scopes, **options)
    headers = {"Authorization": f"Bearer {written}"}
    return httpx.Client(base_url=service.url, headers=headers, timeout=60)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """What was made before there were keys lies in `default`; `ours` is its key, `theirs` not."""
    folder = tmp_path_factory.mktemp("guarded")
    with running(settings_in(folder, max_inline_sample_rows=10)) as service:
        model = train(service, TABLE)
        sample = service.http.post(f"/v1/models/{model['id']}/samples", json={"rows": 20})
        ids = {
            "dataset_id": model["dataset_id"],
            "model_id": model["id"],
            "job_id": model["job_id"],
            "result_id": sample.json()["id"],
            "webhook_id": service.catalog.workspace("default")
            .webhooks.create("https://example.com/", [EventType.JOB_ENDED])[0]
            .id,
            "delivery_id": "evt_1",
            "connection_id": service.catalog.workspace("default")
            .connections.create("con_1", "shop", "https://example.com/", None)
            .id,
        }
        schedules = service.catalog.workspace("default").schedules
        work = {"dataset_id": model["dataset_id"]}
        schedule = schedules.create("s", checked_times("0 3 * * *", "UTC"), work, paused=True)
        ids |= {"schedule_id": schedule.id, "run_id": "run_1"}
        with (
            _client(service, "default", ALL) as ours,
            _client(service, "theirs", ALL) as theirs,
        ):
            time.sleep(FRESH_SECONDS)
            yield Guarded(service, ours, theirs, ids)


def _calls(service: Running) -> list[tuple[str, str]]:
    """Every method at every path of the API."""
    paths = service.http.get("/openapi.json").json()["paths"]
    return [
        (method.upper(), path)
        for path, methods in paths.items()
        for method in methods
        if path.startswith("/v1/")
    ]


def _filled(path: str, ids: dict[str, str]) -> str:
    for name, value in ids.items():
        path = path.replace(f"{{{name}}}", value)
    assert "{" not in path, f"{path}: an id of a kind that this test does not make"
    return path


def test_the_first_key_closes_every_call_but_the_health_checks(guarded: Guarded) -> None:
    for method, path in [*_calls(guarded.service), ("GET", "/metrics"), ("GET", "/v1/nothing")]:
        response = guarded.service.http.request(method, _filled(path, guarded.ids))
        problem = assert_problem(response, 401, "unauthorized")
        assert "gcvae keys create" in problem["advice"]
        assert response.headers["WWW-Authenticate"] == "Bearer"
    assert guarded.service.http.get("/healthz").status_code == 200
    assert guarded.service.http.get("/readyz").status_code == 200


def test_another_workspace_sees_404_of_every_id_and_changes_nothing(guarded: Guarded) -> None:
    before = guarded.service.traces()
    bodies: dict[str, Any] = {
        "samples": {"json": {"rows": 1}},
        "scores": {"content": TABLE, "headers": CSV},
        "imputations": {"content": TABLE, "headers": CSV},
        "encodings": {"content": TABLE, "headers": CSV},
        "dependencies": {"json": {"row": {"a": 1, "b": 0}}},
        "schema": {"json": {"columns": []}},
        "export": {"json": {"connection": "shop", "table": "drawn"}},
        "privacy": {"json": {"cap": {"epsilon": 3.0, "delta": 1e-6}}},
        "{model_id}": {"json": {"scoring": "off"}},
        "{dataset_id}": {"json": {"name": "theirs"}},
        "{schedule_id}": {"json": {"name": "theirs"}},
    }
    with_ids = [call for call in _calls(guarded.service) if "{" in call[1]]
    assert len(with_ids) > 25
    for method, path in with_ids:
        body = bodies.get(path.rsplit("/", 1)[1], {}) if method in ("POST", "PUT", "PATCH") else {}
        query = "?purpose=research" if path.endswith("/dossier") else ""
        response = guarded.theirs.request(method, _filled(path, guarded.ids) + query, **body)
        assert_problem(response, 404, "not-found")
    trained = guarded.theirs.post("/v1/models", json={"dataset_id": guarded.ids["dataset_id"]})
    assert_problem(trained, 404, "not-found")
    assert guarded.service.traces() == before


def test_lists_hold_what_is_in_the_workspace(guarded: Guarded) -> None:
    for name in ("datasets", "models", "jobs"):
        assert guarded.ours.get(f"/v1/{name}").json()["items"], name
        assert guarded.theirs.get(f"/v1/{name}").json()["items"] == [], name


def test_what_a_key_makes_lies_in_its_workspace(guarded: Guarded) -> None:
    made = guarded.theirs.post("/v1/datasets", content=TABLE, headers=CSV).json()
    assert guarded.theirs.get(f"/v1/datasets/{made['id']}").status_code == 200
    assert_problem(guarded.ours.get(f"/v1/datasets/{made['id']}"), 404, "not-found")
    assert guarded.theirs.delete(f"/v1/datasets/{made['id']}").status_code == 204


def test_an_idempotency_key_of_another_workspace_is_free(guarded: Guarded) -> None:
    headers = CSV | {"Idempotency-Key": "one"}
    made = [
        client.post("/v1/datasets", content=TABLE, headers=headers).json()["id"]
        for client in (guarded.ours, guarded.theirs)
    ]
    assert made[0] != made[1]


@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [([Scope.READ], (200, 403, 403)), ([Scope.WRITE], (403, 201, 403)), (ALL, (200, 201, 200))],
)
def test_a_key_does_what_its_scopes_say(
    guarded: Guarded, scopes: list[Scope], allowed: tuple[int, int, int]
) -> None:
    with _client(guarded.service, "scoped", scopes) as client:
        answers = (
            client.get("/v1/datasets"),
            client.post("/v1/datasets", content=TABLE, headers=CSV),
            client.get("/metrics"),
        )
    assert tuple(answer.status_code for answer in answers) == allowed
    for answer in answers:
        if answer.status_code == 403:
            same_wording(assert_problem(answer, 403, "missing-scope")["detail"])


def test_an_upload_is_refused_before_its_body_comes(guarded: Guarded) -> None:
    address = httpx.URL(guarded.service.url)
    with socket.create_connection((address.host, address.port), timeout=10) as connection:
        connection.sendall(
            b"POST /v1/datasets HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: text/csv\r\nContent-Length: 100000000\r\n\r\n"
        )
        assert connection.recv(12) == b"HTTP/1.1 401"


@pytest.mark.parametrize("host", ["x/healthz?", "x/docs#", "x/v1/jobs?", "localhost/healthz?"])
def test_a_forged_host_names_no_other_path(guarded: Guarded, host: str) -> None:
    """The framework's URL of a request begins with its Host; what is guarded is the path alone."""
    with _client(guarded.service, "scoped", [Scope.READ]) as reader:
        for path in ("/v1/datasets", "/v1/audit", "/metrics"):
            forged = {"Host": host}
            assert guarded.service.http.get(path, headers=forged).status_code == 401
            if path != "/v1/datasets":
                assert reader.get(path, headers=forged).status_code == 403


def test_a_revoked_key_is_refused_within_the_second(guarded: Guarded) -> None:
    key, written = guarded.service.catalog.keys.create("brief", "", ALL)
    header = {"Authorization": f"Bearer {written}"}
    assert guarded.service.http.get("/v1/jobs", headers=header).status_code == 200
    guarded.service.catalog.keys.revoke(key.id)
    time.sleep(FRESH_SECONDS)
    refused = guarded.service.http.get("/v1/jobs", headers=header)
    same_wording(assert_problem(refused, 401, "unauthorized")["detail"])
    kept = {one.id: one for one in guarded.service.catalog.keys.list()}
    assert kept[key.id].last_used_at is not None


def test_every_kind_of_wrong_key_costs_the_same_work(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is held against one hash, an unknown one against nobody's; those of the right form take
    the same questions to the database, whatever is asked for and whether it is there."""
    from catalog.access import keys

    checked: list[str] = []
    fits = keys._fits
    monkeypatch.setattr(keys, "_fits", lambda *told: (checked.append(told[0]), fits(*told))[1])
    catalog = guarded.service.catalog
    past = datetime.now(UTC) - timedelta(days=1)
    _, expired = catalog.keys.create("brief", "", ALL, expires_at=past)
    key, revoked = catalog.keys.create("brief", "", ALL)
    catalog.keys.revoke(key.id)
    _, living = catalog.keys.create("brief", "", ALL)
    guarded.ours.get("/v1/jobs")  # that there are keys at all is asked once
    unknown = f"gcv_{'z' * 26}_{'s' * 43}"
    other = f"{living[:-43]}{'s' * 43}"
    foreign = f"/v1/datasets/{guarded.ids['dataset_id']}"
    wrongs = expired, revoked, unknown, other, living[:-1], "nonsense", f"{living[:-1]}é"
    asked = {}
    for path in ("/v1/jobs", foreign, "/v1/datasets/ds_none"):
        for wrong in wrongs:
            asked[wrong, path] = _questions(guarded.service, checked, wrong, path)
        time.sleep(FRESH_SECONDS)  # a refusal is remembered so long
    whole = [asked[name] for name in asked if keys.KEY_FORM.fullmatch(name[0])]
    assert len(whole) == 15
    assert len(whole[0]) == 1
    assert all(questions == whole[0] for questions in whole)


def _questions(service: Running, checked: list[str], key: str, path: str) -> list[str]:
    """What a refused key makes the process ask the database; it is held against one hash."""
    engine = service.catalog.database.engine
    questions: list[str] = []

    def note(_connection: Any, _cursor: Any, question: str, *_rest: Any) -> None:
        if "keys" in question:  # lines of the audit log are written behind earlier answers
            questions.append(question)

    checked.clear()
    event.listen(engine, "before_cursor_execute", note)
    try:
        header = {"Authorization": f"Bearer {key}".encode()}
        assert_problem(service.http.get(path, headers=header), 401, "unauthorized")
    finally:
        event.remove(engine, "before_cursor_execute", note)
    assert len(checked) == 1, key
    return questions


@pytest.mark.parametrize("header", ["Basic Zm9v", "Bearer", "gcv_x", ""])
def test_another_kind_of_authorization_is_named(guarded: Guarded, header: str) -> None:
    response = guarded.service.http.get("/v1/jobs", headers={"Authorization": header})
    assert "Bearer gcv_" in assert_problem(response, 401, "unauthorized")["advice"]


def _early_in_a_minute(seconds: float) -> None:
    """The clock's minute lasts so long still: requests of the last one count in part only."""
    if (left := 60.0 - time.time() % 60.0) < seconds:
        time.sleep(left)


def test_a_key_is_told_what_is_left_and_then_to_wait(start: Callable[..., Running]) -> None:
    service = start(max_requests_per_minute=5)
    with _client(service, "busy", ALL) as busy, _client(service, "calm", ALL) as calm:
        time.sleep(FRESH_SECONDS)
        _early_in_a_minute(5.0)
        for left in range(4, -1, -1):
            answer = busy.get("/v1/jobs")
            assert answer.status_code == 200
            assert answer.headers["RateLimit-Policy"] == '"minute";q=5;w=60, "second";q=5;w=1'
            assert answer.headers["RateLimit"].startswith(f'"minute";r={left};t=')
        refused = busy.get("/v1/jobs")
        problem = assert_problem(refused, 429, "too-many-requests")
        assert problem["limit"] == 5
        assert problem["setting"] == "GCVAE_MAX_REQUESTS_PER_MINUTE"
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert calm.get("/v1/jobs").status_code == 200


@pytest.mark.slow
def test_a_minute_of_requests_may_not_be_sent_at_once(start: Callable[..., Running]) -> None:
    service = start(max_requests_per_minute=1_200)
    with _client(service, "busy", ALL) as busy, _client(service, "calm", ALL) as calm:
        time.sleep(FRESH_SECONDS)
        began_at = time.monotonic()
        answers = [busy.get("/v1/jobs") for _ in range(300)]
        seconds = time.monotonic() - began_at
        refused = [answer for answer in answers if answer.status_code == 429]
        assert 300 - len(refused) <= 20 * (math.ceil(seconds) + 1)
        problem = assert_problem(refused[0], 429, "too-many-requests")
        assert problem["limit"] == 20
        same_wording(problem["detail"])
        assert refused[0].headers["Retry-After"] == "1"
        assert calm.get("/v1/jobs").status_code == 200
        time.sleep(2)
        assert busy.get("/v1/jobs").headers["RateLimit"].startswith('"minute";r=')


def test_a_table_that_is_sent_counts_as_several_requests(start: Callable[..., Running]) -> None:
    service = start(max_requests_per_minute=11)
    with _client(service, "busy", ALL) as busy, _client(service, "calm", ALL) as calm:
        calm.post("/v1/datasets", content=TABLE, headers=CSV)  # the first waits for imports
        _early_in_a_minute(10.0)
        answers = [busy.post("/v1/datasets", content=TABLE, headers=CSV) for _ in range(3)]
        assert busy.get("/v1/datasets", headers=CSV).status_code == 200
    assert [answer.status_code for answer in answers] == [201, 201, 429]
    assert [answer.headers["RateLimit"][:12] for answer in answers[:2]] == [
        '"minute";r=6',
        '"minute";r=1',
    ]


def test_a_refused_request_costs_nothing() -> None:
    _early_in_a_minute(5.0)
    limits = RateLimits(per_minute=11)
    limits.count("key", cost=10)
    time.sleep(2.1)  # until nothing counts in the window of a second
    with pytest.raises(TooManyRequestsError):
        limits.count("key", cost=11)
    assert limits.count("key").remaining == 0


def test_a_refused_key_is_looked_up_once_a_moment_and_then_anew(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who knocks without end costs no hash each time; a key that is made meanwhile gets in."""
    from catalog.access import keys

    checked: list[str] = []
    fits = keys._fits
    monkeypatch.setattr(keys, "_fits", lambda *told: (checked.append(told[0]), fits(*told))[1])
    http, catalog = guarded.service.http, guarded.service.catalog
    text = f"gcv_{'k' * 26}_{'s' * 43}"
    bearer = {"Authorization": f"Bearer {text}"}
    refusals = [http.get("/v1/jobs", headers=bearer) for _ in range(5)]
    assert len(checked) == 1
    assert {answer.json()["detail"] for answer in refusals} == {refusals[0].json()["detail"]}
    assert all(answer.status_code == 401 for answer in refusals)
    catalog.keys.create("late", "", ALL, text=text)
    time.sleep(FRESH_SECONDS)
    assert http.get("/v1/jobs", headers=bearer).status_code == 200


def test_the_first_key_counts_from_its_first_call_on(start: Callable[..., Running]) -> None:
    """What a process knows of keys is a moment old: a key that is sent makes it look again."""
    service = start()
    assert service.http.get("/v1/jobs").status_code == 200  # there are none, it remembers
    with _client(service, "first", ALL) as first, _client(service, "second", ALL) as second:
        made = first.post("/v1/datasets", content=TABLE, headers=CSV).json()
        assert second.get(f"/v1/datasets/{made['id']}").status_code == 404
        assert first.get(f"/v1/datasets/{made['id']}").status_code == 200


def test_without_keys_a_key_is_not_asked_for(start: Callable[..., Running]) -> None:
    service = start()
    assert service.http.get("/v1/jobs", headers={"Authorization": "Bearer x"}).status_code == 200
    assert service.http.get("/metrics").status_code == 200


def test_who_did_what_is_listed_for_who_may_administer(guarded: Guarded) -> None:
    service = guarded.service
    with (
        _client(service, "watched", ALL) as admin,
        _client(service, "watched", [Scope.READ, Scope.WRITE]) as user,
    ):
        made = user.post("/v1/datasets", content=TABLE, headers=CSV)
        user.get("/v1/datasets")
        user.delete(f"/v1/datasets/{made.json()['id']}")
        user.delete("/v1/datasets/ds_none")
        assert_problem(user.get("/v1/audit"), 403, "missing-scope")
        lines = _audited(admin, 3)
        keys = [key for key in service.catalog.keys.list() if key.workspace == "watched"]
        assert [(line["action"], line["status"]) for line in reversed(lines)] == [
            ("POST /v1/datasets", 201),
            ("DELETE /v1/datasets/{dataset_id}", 204),
            ("DELETE /v1/datasets/{dataset_id}", 404),
        ]
        assert {line["actor"] for line in lines} == {keys[1].id}
        assert lines[-1]["made"] == made.headers["Location"]
        assert lines[-1]["request_id"] == made.headers["X-Request-ID"]
        assert lines[-1]["address"] == "127.0.0.1"
        assert str(TABLE) not in str(lines)
        page = admin.get("/v1/audit?limit=1").json()
        assert admin.get(f"/v1/audit?limit=2&cursor={page['next_cursor']}").json()["items"] == [
            lines[1],
            lines[2],
        ]
    assert service.catalog.audit.first_break() is None


def _audited(client: httpx.Client, n_lines: int) -> list[dict[str, Any]]:
    """The workspace's lines, once there are so many: they are written behind their answers."""
    for _ in range(1000):
        lines: list[dict[str, Any]] = client.get("/v1/audit").json()["items"]
        if len(lines) >= n_lines:
            break
        time.sleep(0.02)
    return lines
