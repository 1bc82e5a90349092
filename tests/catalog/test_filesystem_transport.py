"""The broker in a folder, between real processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from catalog import Job, Queue
from catalog.celery_dispatch import CeleryDispatcher, make_celery, queue_name
from catalog.errors import DispatchError

_READER = """
import sys
from queue import Empty
from kombu import Connection
from catalog.filesystem_transport import Transport

options = {"folder": sys.argv[1], "polling_interval": 0.01}
with Connection("filesystem://", transport=Transport, transport_options=options) as connection:
    queue = connection.SimpleQueue("numbers")
    print("ready", flush=True)
    while True:
        message = queue.get(timeout=30)
        message.ack()
        if message.payload == "end":
            break
        print(message.payload, flush=True)
"""

_WRITER = """
import sys
from kombu import Connection
from catalog.filesystem_transport import Transport

options = {"folder": sys.argv[1]}
with Connection("filesystem://", transport=Transport, transport_options=options) as connection:
    queue = connection.SimpleQueue("numbers")
    for number in range(int(sys.argv[2]), int(sys.argv[3])):
        queue.put(number)
"""


def _start(program: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )


def test_two_readers_get_every_message_of_two_writers_once(tmp_path: Path) -> None:
    readers = [_start(_READER, tmp_path) for _ in range(2)]
    try:
        for reader in readers:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "ready\n"
        writers = [_start(_WRITER, tmp_path, first, first + 200) for first in (0, 200)]
        for writer in writers:
            assert writer.wait(60) == 0
            assert writer.stdout is not None
            writer.stdout.close()
        _put_ends(tmp_path, len(readers))
        seen = [
            int(line) for reader in readers for line in reader.communicate(timeout=60)[0].split()
        ]
    finally:
        for reader in readers:
            reader.kill()
            reader.wait()
    assert sorted(seen) == list(range(400))
    assert list((tmp_path / "numbers").iterdir()) == []


def _put_ends(folder: Path, count: int) -> None:
    from kombu import Connection

    from catalog.filesystem_transport import Transport

    options = {"folder": str(folder)}
    with Connection("filesystem://", transport=Transport, transport_options=options) as connection:
        queue = connection.SimpleQueue("numbers")
        for _ in range(count):
            queue.put("end")


def test_messages_come_in_the_order_they_were_sent(tmp_path: Path) -> None:
    app = make_celery(f"filesystem://{tmp_path}")
    dispatcher = CeleryDispatcher(app)
    ids = [f"job_{number}" for number in range(5)]
    for job_id in ids:
        dispatcher.send(_job(job_id))
    with app.connection_for_read() as connection:
        channel = connection.default_channel
        queue = queue_name(Queue.COMPUTE)
        messages = [channel.basic_get(queue, no_ack=True) for _ in ids]
        assert [message.decode()[0][0] for message in messages] == ids
        assert channel.basic_get(queue) is None


def test_a_message_goes_to_the_queue_of_its_job(tmp_path: Path) -> None:
    app = make_celery(f"filesystem://{tmp_path}")
    CeleryDispatcher(app).send(_job("job_1", Queue.TRAIN))
    with app.connection_for_read() as connection:
        channel = connection.default_channel
        assert channel.basic_get(queue_name(Queue.COMPUTE)) is None
        assert channel.basic_get(queue_name(Queue.TRAIN)) is not None


def _job(job_id: str, queue: Queue = Queue.COMPUTE) -> Job:
    """A job that is nothing but an id in a queue."""
    return Job(**dict.fromkeys(Job.__annotations__) | {"id": job_id, "queue": queue})


def test_a_broker_that_answers_answers_a_ping(tmp_path: Path) -> None:
    CeleryDispatcher(make_celery(f"filesystem://{tmp_path}/made/on/the/way")).ping()


@pytest.mark.parametrize("url", ["filesystem:///proc/no/such", "redis://127.0.0.1:9/0"])
def test_a_broker_that_is_away_is_said_to_be_away(url: str) -> None:
    dispatcher = CeleryDispatcher(make_celery(url))
    with pytest.raises(DispatchError, match="does not answer"):
        dispatcher.ping()
    with pytest.raises(DispatchError, match="job_1"):
        dispatcher.send(_job("job_1"))
