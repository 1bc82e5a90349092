"""Keys, sessions, passwords and secrets of connections and webhooks come out nowhere, even while
the servers behind them are away."""

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
from tests.servers.webhook_receiver import Receiver, receiver

CSV = {"Content-Type": "text/csv"}
TABLE = b"a,b\n" + b"".join(b"%d,%d\n" % (i % 9, i % 2) for i in range(60))
DATABASE, QUEUE, STORE = "pw-of-the-database", "pw-of-the-queue", "pw-of-the-store"
CONNECTION, SECRETS_KEY = "pw-of-the-connection", "key-of-the-secrets-of-connections"
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
        hooks = stack.enter_context(receiver())
        with redis.client() as client:
            client.config_set("requirepass", QUEUE)
        redis.url = redis.url.replace("127.0.0.1", f":{QUEUE}@127.0.0.1")
        deployment = _deployment(Servers(postgres, redis, s3, proxy), folder, collector)
        stack.enter_context(deployment)
        seen = _use(deployment, hooks)
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
            "GCVAE_SECRETS_KEY": SECRETS_KEY,
            "GCVAE_OUTSIDE_HOSTS": "127.0.0.1",
            "GCVAE_OUTSIDE_NETWORKS": "127.0.0.0/8",
        }
    return deployment


def _use(deployment: Deployment, hooks: Receiver) -> Seen:
    catalog = Catalog(deployment.database_url)
    _, admin = catalog.keys.create("north", "", list(Scope))
    gone, revoked = catalog.keys.create("north", "", list(Scope))
    catalog.keys.revoke(gone.id)
    catalog.close()
    answers: list[str] = []
    headers = {"Authorization": f"Bearer {admin}"}
    with httpx.Client(base_url=deployment.url, headers=headers, timeout=60) as http:
        session = http.post("/v1/session").cookies
        hook = http.post("/v1/webhooks", json={"url": f"{hooks.url}/hook"}).json()["secret"]
        _connect(http, deployment.servers, hooks, answers)
        _order(http, answers)
        hooks.wait_for(1)
        for key in (revoked, WRONG_KEY, admin[:-1]):
            refused = http.get("/v1/jobs", headers={"Authorization": f"Bearer {key}"})
            assert refused.status_code == 401
            answers.append(_told(refused))
        _use_while_away(deployment.servers, http, answers)
        answers += [_told(http.get(path)) for path in ("/v1/connections", "/v1/schedules")]
        places = {"answers": "\n".join(answers), "audit": http.get("/v1/audit").text}
        places["metrics"] = http.get("/metrics").text
    secrets = {"key": admin, "revoked key": revoked, "unknown key": WRONG_KEY}
    # A key is "gcv_", its id, "_" and its bits, which may hold a "_" themselves.
    secrets |= {f"bits of the {name}": key.split("_", 2)[2] for name, key in secrets.items()}
    secrets |= {"database": DATABASE, "queue": QUEUE, "store": STORE}
    secrets |= {"connection": CONNECTION, "key of the connections": SECRETS_KEY, "webhook": hook}
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


def _connect(http: httpx.Client, servers: Servers, hooks: Receiver, answers: list[str]) -> None:
    """Have connections used, of which every second is refused."""
    for name, url, what in (
        ("well", f"postgresql://gcvae@127.0.0.1:{servers.postgres.port}/secrets", "keys"),
        ("wrong", f"postgresql://nobody@127.0.0.1:{servers.postgres.port}/none", "keys"),
        ("maria", "mysql://nobody@127.0.0.1:1/none", "keys"),
        ("bucket", f"s3://AK@bucket?endpoint=http://127.0.0.1:{servers.s3.port}", "none.csv"),
        ("web", hooks.url, "none.csv"),
        ("away", "http://127.0.0.1:1/", "none.csv"),
    ):
        body = {"name": name, "url": url, "password": CONNECTION}
        source = {"connection": name, ("key" if "." in what else "table"): what}
        schedule = {"name": name, "cron": "0 3 1 1 *", "source": source}
        answers += [
            _told(http.post("/v1/connections", json=body)),
            _told(http.post(f"/v1/connections/{name}/test")),
            _told(http.post("/v1/datasets", json=source)),
        ]
        made = http.post("/v1/schedules", json=schedule)
        run = http.post(f"/v1/schedules/{made.json()['id']}/runs")
        answers += [_told(made), _told(run)]
        assert run.status_code == 202, run.text
    answers += [_told(http.get(path)) for path in ("/v1/connections", "/v1/webhooks")]


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
        "answers": "503", "audit": "POST /v1/connections", "metrics": "gcvae_jobs",
        "traces": "attempt at train", "log": "request answered",
    }.items():  # fmt: skip
        assert text in seen.places[place], place
    assert "unreadable-source" in seen.places["answers"]


@pytest.mark.parametrize("place", ["answers", "audit", "metrics", "traces", "log"])
def test_no_secret_comes_out(seen: Seen, place: str) -> None:
    assert len(seen.secrets) == 13
    assert min(map(len, seen.secrets.values())) >= len(STORE)
    found = [name for name, secret in seen.secrets.items() if secret in seen.places[place]]
    assert found == []
