"""The fault suite in its short form; `make test-faults` is the long one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from catalog import Catalog, ModelStatus
from tests.faults.campaign import Outcome, Plan, run
from tests.faults.deployment import WORKSPACES, Deployment, Servers
from tests.faults.report import document, lines
from tests.faults.verdict import Verdict, store_of
from tests.servers.servers import PostgresServer, RedisServer, S3Server
from tests.servers.store_proxy import StoreProxy

_PLAN = Plan("short", faults=7, jobs=4, seed=3, grace_seconds=8.0, with_stand_in=True, n_workers=3)


@pytest.fixture
def servers() -> Iterator[Servers]:
    with ExitStack() as stack:
        s3 = stack.enter_context(S3Server())
        postgres = stack.enter_context(PostgresServer())
        redis = stack.enter_context(RedisServer())
        yield Servers(postgres, redis, s3, stack.enter_context(StoreProxy(s3.port)))


@pytest.mark.slow
def test_faults_at_random_moments_lose_nothing_and_leave_nothing(
    servers: Servers, tmp_path: Path
) -> None:
    verdicts: list[Verdict] = []
    outcome = run(_PLAN, servers, logs=tmp_path, inspect=_spoil(verdicts))
    assert outcome.is_right, "\n".join(lines([outcome]))
    assert outcome.n_jobs >= _PLAN.jobs
    assert outcome.n_trespasses > 50
    _assert_report(outcome)
    [spoilt] = verdicts
    assert spoilt.orphans == ["models/nobody/model.gcvae"]
    assert len(spoilt.missing) == 2  # the record without bytes, and its job's outcome
    found = spoilt.crossed[0].partition(" of ")[2]
    assert found in ("north: 200, not 404", "north: 204, not 404"), "read, or deleted"
    assert not spoilt.is_right


def _spoil(verdicts: list[Verdict]) -> Callable[[Deployment, Callable[[], Verdict]], None]:
    """Leave bytes without a record, a record without bytes, and a table in the other workspace: the
    judge has to find them."""

    def spoil(deployment: Deployment, judge: Callable[[], Verdict]) -> None:
        catalog, store = Catalog(deployment.database_url), store_of(deployment)
        store.publish("models/nobody/model.gcvae", b"weights")
        [model] = (
            catalog.workspace(WORKSPACES[0]).models.list(limit=1, status=ModelStatus.READY).items
        )
        store.delete(str(model.artifact_key))
        catalog.close()
        _move_a_table(deployment)
        verdicts.append(judge())

    return spoil


def _move_a_table(deployment: Deployment) -> None:
    with psycopg.connect(deployment.database_url) as connection:
        moved = connection.execute(
            "UPDATE datasets SET workspace = %s WHERE id ="
            " (SELECT id FROM datasets WHERE workspace = %s ORDER BY id LIMIT 1)",
            WORKSPACES[::-1],
        )
    assert moved.rowcount == 1


def _assert_report(outcome: Outcome) -> None:
    report = document([outcome])
    assert sum(row["number"] for row in report["faults"]) == _PLAN.faults
    assert report["campaigns"][0]["is_right"]
    assert "everything is right" in "\n".join(lines([outcome]))
