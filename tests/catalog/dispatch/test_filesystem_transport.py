"""The broker in a folder, between real processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_READER = """
import sys
from queue import Empty
from kombu import Connection
from catalog.dispatch.filesystem_transport import Transport

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
from catalog.dispatch.filesystem_transport import Transport

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


@pytest.mark.slow
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

    from catalog.dispatch.filesystem_transport import Transport

    options = {"folder": str(folder)}
    with Connection("filesystem://", transport=Transport, transport_options=options) as connection:
        queue = connection.SimpleQueue("numbers")
        for _ in range(count):
            queue.put("end")


def test_a_message_that_is_written_while_another_process_begins_disturbs_nobody(
    tmp_path: Path,
) -> None:
    """It has its own name by the time that it is looked at: as a link that leads nowhere."""
    (tmp_path / "numbers").mkdir()
    (tmp_path / "numbers" / ".being-written.msg").symlink_to(tmp_path / "gone")
    _put_ends(tmp_path, 1)
    assert len(list((tmp_path / "numbers").glob("[!.]*.msg"))) == 1
