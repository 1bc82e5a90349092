"""Keys, sessions and passwords come out nowhere, even while the servers behind them are away."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from catalog import Catalog
from catalog.records import Scope
from tests.faults.deployment import Deployment, Servers
from tests.servers.servers import PostgresServer, RedisServer, S3Server
from tests.servers.store_proxy import StoreMode, StoreProxy
from tests.servers.trace_collector import TraceCollector, trace_collector

CSV = {"Content-Type": "text/csv"}
TABLE = b"a,b\n" + b"".join(b"%d,%d\n" % (i % 9, i % 2) for i in range(60))
DATABASE, QUEUE, STORE = "pw-of-the-database", "pw-of-the-queue", "pw-of-the-store"
WRONG_KEY = "gcv_" + "0" * 26 + "_" + "unknown" * 6


@dataclass(frozen=True)
class Seen:
    """What came out, and what must not.

    Attributes:
        places: by place, all of its text.
        secrets: by name.
    """

    places: dict[str, str]
    secrets: dict[str, str]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """A deployment with passwords that is used, and used while each server in turn is away."""
    folder = tmp_path_factory.mktemp("secrets")
    with ExitStack() as stack:
        s3, redis = stack.enter_context(S3Server()), stack.enter_context(RedisServer())
        postgres = stack.enter_context(PostgresServer())
        proxy = stack.enter_context(StoreProxy(s3.port))
        collector = stack.enter_context(trace_collector())
        with redis.client() as client:
            client.config_set("requirepass", QUEUE)
        redis.url = redis.url.replace("127.0.0.1", f":{QUEUE}@127.0.0.1")
        deployment = _deployment(Servers(postgres, redis, s3, proxy), folder, collector)
        stack.enter_context(deployment)
        seen = _use(deployment)
        for member in deployment.members():
            member.is_held = True
            member.stop()
    seen.places["log"] = "".join(log.read_text() for log in folder.glob("*.log"))
    seen.places["traces"] = "".join(map(str, collector.spans))
    return seen


def _deployment(servers: Servers, folder: Path, collector: TraceCollector) -> Deployment:
    deployment = Deployment(
        servers, folder, "secrets", n_workers=1, with_stand_in=True, grace_seconds=30
    )
    for member in deployment.members():
        member.environment |= {
            "GCVAE_DATABASE_PASSWORD": DATABASE,
            "AWS_SECRET_ACCESS_KEY": STORE,
            "GCVAE_TRACES_ENDPOINT": collector.endpoint,
            "GCVAE_LOG_LEVEL": "debug",
        }
    return deployment


def _use(deployment: Deployment) -> Seen:
    catalog = Catalog(deployment.database_url)
    _, admin = catalog.keys.create("north", "", list(Scope))
    gone, revoked = catalog.keys.create("north", "", list(Scope))
    catalog.keys.revoke(gone.id)
    catalog.close()
    answers: list[str] = []
    headers = {"Authorization": f"Bearer {admin}"}
    with httpx.Client(base_url=deployment.url, headers=headers, timeout=60) as http:
        session = http.post("/v1/session").cookies
        _order(http, answers)
        for key in (revoked, WRONG_KEY, admin[:-1]):
            refused = http.get("/v1/jobs", headers={"Authorization": f"Bearer {key}"})
            assert refused.status_code == 401
            answers.append(_told(refused))
        _use_while_away(deployment.servers, http, answers)
        places = {"answers": "\n".join(answers), "audit": http.get("/v1/audit").text}
        places["metrics"] = http.get("/metrics").text
    secrets = {"key": admin, "revoked key": revoked, "unknown key": WRONG_KEY}
    # A key is "gcv_", its id, "_" and its bits, which may hold a "_" themselves.
    secrets |= {f"bits of the {name}": key.split("_", 2)[2] for name, key in secrets.items()}
    secrets |= {"database": DATABASE, "queue": QUEUE, "store": STORE}
    return Seen(places, secrets | {"session": next(iter(session.values()))})


def _order(http: httpx.Client, answers: list[str]) -> None:
    """Have a job done, so that the worker has used its servers."""
    made = http.post("/v1/datasets", content=TABLE, headers=CSV)
    training = {"preset": "paper-vae", "device": "cpu", "max_steps": 5}
    asked = {"dataset_id": made.json()["id"], "training": training}
    model = http.post("/v1/models", json=asked)
    answers += [_told(made), _told(model)]
    job = f"/v1/jobs/{model.json()['job_id']}"
    deadline = time.monotonic() + 60
    while http.get(job).json()["status"] != "succeeded":
        assert time.monotonic() < deadline, http.get(job).text
        time.sleep(0.1)
    answers.append(_told(http.get(job)))


def _use_while_away(servers: Servers, http: httpx.Client, answers: list[str]) -> None:
    """Errors of a server are the likeliest to hold the address that it has."""
    servers.proxy.mode = StoreMode.ERRORS
    answers.append(_told(http.post("/v1/datasets", content=TABLE, headers=CSV)))
    servers.proxy.mode = StoreMode.WELL
    for server in (servers.redis, servers.postgres):
        server.kill()
        answers += [_told(http.get(path)) for path in ("/readyz", "/v1/jobs", "/metrics")]
        time.sleep(2.0)  # the worker notices, too
        server.start()
    deadline = time.monotonic() + 60
    while http.get("/readyz").status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _told(response: httpx.Response) -> str:
    return f"{response.status_code} {response.headers} {response.text}"


def test_every_place_was_looked_into(seen: Seen) -> None:
    for place, text in {
        "answers": "503", "audit": "POST /v1/models", "metrics": "gcvae_jobs",
        "traces": "attempt at train", "log": "request answered",
    }.items():  # fmt: skip
        assert text in seen.places[place], place


@pytest.mark.parametrize("place", ["answers", "audit", "metrics", "traces", "log"])
def test_no_secret_comes_out(seen: Seen, place: str) -> None:
    assert len(seen.secrets) == 10
    assert min(map(len, seen.secrets.values())) >= len(STORE)
    found = [name for name, secret in seen.secrets.items() if secret in seen.places[place]]
    assert found == []
