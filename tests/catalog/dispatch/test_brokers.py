"""One contract, run on every broker: a folder, and Redis."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from celery import Celery

from catalog import Job, Queue
from catalog.dispatch.celery import CeleryDispatcher, make_celery, queue_name
from catalog.errors import DispatchError
from tests.servers.servers import RedisServer
from tests.wordings import refuses

_READER = """
import sys
from queue import Empty
from catalog import Queue
from catalog.dispatch.celery import make_celery, queue_name

with make_celery(sys.argv[1]).connection_for_read() as connection:
    queue = connection.SimpleQueue(queue_name(Queue.COMPUTE))
    print("ready", flush=True)
    while True:
        message = queue.get(timeout=60)
        [job_id] = message.payload[0]
        message.ack()
        if job_id == "end":
            break
        print(job_id, flush=True)
"""


def test_messages_come_in_the_order_they_were_sent(broker_url: str) -> None:
    app = make_celery(broker_url)
    ids = [f"job_{number}" for number in range(5)]
    for job_id in ids:
        CeleryDispatcher(app).send(_job(job_id))
    assert _received(app) == ids


def test_two_readers_get_every_message_once(broker_url: str) -> None:
    command = [sys.executable, "-c", _READER, broker_url]
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        for reader in readers:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "ready\n"
        dispatcher = CeleryDispatcher(make_celery(broker_url))
        ids = [f"job_{number}" for number in range(100)]
        for job_id in [*ids, "end", "end"]:
            dispatcher.send(_job(job_id))
        seen = [line for reader in readers for line in reader.communicate(timeout=60)[0].split()]
    finally:
        for reader in readers:
            reader.kill()
            reader.wait()
    assert sorted(seen) == sorted(ids)


def test_a_message_goes_to_the_queue_of_its_job(broker_url: str) -> None:
    app = make_celery(broker_url)
    CeleryDispatcher(app).send(_job("job_1", Queue.TRAIN))
    assert _received(app) == []
    assert _received(app, Queue.TRAIN) == ["job_1"]


def test_a_broker_that_answers_answers_a_ping(broker_url: str) -> None:
    CeleryDispatcher(make_celery(broker_url)).ping()


@pytest.mark.parametrize("url", ["filesystem:///proc/no/such", "redis://127.0.0.1:9/0"])
def test_a_broker_that_is_away_is_said_to_be_away(url: str) -> None:
    _assert_away(CeleryDispatcher(make_celery(url)))


class TestRedisIsAway:
    @pytest.fixture
    def server(self) -> Iterator[RedisServer]:
        with RedisServer() as server:
            yield server

    def test_what_it_had_taken_is_there_again_after_a_kill(self, server: RedisServer) -> None:
        app = make_celery(server.url)
        dispatcher = CeleryDispatcher(app)
        with server.client() as client:
            client.config_set("appendfsync", "always")
        dispatcher.send(_job("job_1"))
        server.kill()
        _assert_away(dispatcher)
        server.start()
        dispatcher.send(_job("job_2"))
        assert _received(app) == ["job_1", "job_2"]

    def test_a_wiped_one_takes_messages_like_a_new_one(self, server: RedisServer) -> None:
        app = make_celery(server.url)
        dispatcher = CeleryDispatcher(app)
        dispatcher.send(_job("job_1"))
        server.flush()
        dispatcher.send(_job("job_2"))
        assert _received(app) == ["job_2"]

    def test_one_that_is_frozen_or_full_is_away_too(self, server: RedisServer) -> None:
        dispatcher = CeleryDispatcher(make_celery(server.url, answer_seconds=0.2))
        dispatcher.ping()
        server.freeze()
        _assert_away(dispatcher)
        server.thaw()
        dispatcher.ping()
        with server.client() as client:
            client.config_set("maxmemory", "1")
        _assert_away(dispatcher)


def _assert_away(dispatcher: CeleryDispatcher) -> None:
    with refuses(DispatchError):
        dispatcher.ping()
    with refuses(DispatchError):
        dispatcher.send(_job("job_9"))


def _job(job_id: str, queue: Queue = Queue.COMPUTE) -> Job:
    """A job that is nothing but an id in a queue."""
    return Job(**dict.fromkeys(Job.__annotations__) | {"id": job_id, "queue": queue})


def _received(app: Celery, queue: Queue = Queue.COMPUTE) -> list[str]:
    """All that is in the queue."""
    name = queue_name(queue)
    with app.connection_for_read() as connection:
        channel = connection.default_channel
        channel.queue_declare(name)
        messages = iter(lambda: channel.basic_get(name, no_ack=True), None)
        return [message.decode()[0][0] for message in messages]
