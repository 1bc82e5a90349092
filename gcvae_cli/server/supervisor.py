"""Starts the server processes of `gcvae serve`, restarts those that end, and ends them all."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType

from gcvae_cli.errors import ServerError

_POLLING_SECONDS = 0.1
_READY_SECONDS = 60.0
_RESTARTS_WINDOW_SECONDS = 60.0
_MOST_RESTARTS = 5


@dataclass
class Server:
    """Server process, which is restarted if it ends unexpectedly.

    Attributes:
        name: Name of the process in messages.
        arguments: Command line of the process.
        environment: All environment variables of the process.
    """

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    _process: subprocess.Popen[bytes] | None = None
    _restarted_at: list[float] = field(default_factory=list)

    def start(self) -> None:
        """Starts the process in a new session, so that Ctrl-C reaches only the supervisor."""
        self._process = subprocess.Popen(
            self.arguments,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def require_running(self) -> None:
        """Checks that the process is running.

        Raises:
            ServerError: The process has ended.
        """
        if (exit_code := self._exit_code()) is not None:
            raise ServerError(
                f"the {self.name} did not start ({_ending(exit_code)}); see its messages above"
            )

    def keep_running(self) -> None:
        """Restarts the process if it has ended.

        Raises:
            ServerError: The process ended more than five times within a minute.
        """
        if (exit_code := self._exit_code()) is None:
            return
        now = time.monotonic()
        recent = [at for at in self._restarted_at if now - at < _RESTARTS_WINDOW_SECONDS]
        if len(recent) >= _MOST_RESTARTS:
            raise ServerError(
                f"the {self.name} ended {_MOST_RESTARTS + 1} times within a minute "
                f"({_ending(exit_code)}); see its messages above"
            )
        print(f"gcvae: the {self.name} ended ({_ending(exit_code)}), restarting", file=sys.stderr)
        time.sleep(min(0.2 * 2 ** len(recent), 5.0))
        self._restarted_at = [*recent, now]
        self.start()

    def _exit_code(self) -> int | None:
        assert self._process is not None, "started before it is watched"
        return self._process.poll()

    def ask_to_end(self) -> None:
        """Sends SIGTERM to the process if it is running."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def end(self, grace_seconds: float) -> None:
        """Waits for the process to end, and kills it after `grace_seconds`."""
        if self._process is None:
            return
        try:
            self._process.wait(max(grace_seconds, 0.0))
        except subprocess.TimeoutExpired:
            print(f"gcvae: the {self.name} did not end in time and is killed", file=sys.stderr)
            self._process.kill()
            self._process.wait()


def supervise(
    servers: Sequence[Server],
    *,
    ready_url: str,
    on_ready: Callable[[], None],
    grace_seconds: float,
) -> None:
    """Runs server processes until this process gets SIGINT or SIGTERM, then ends them.

    Args:
        ready_url: URL that responds with status 200 once the service is ready.
        on_ready: Function that is called once the service is ready.
        grace_seconds: Time that all processes together have to end before they are killed.

    Raises:
        ServerError: A server does not start, or ends repeatedly.
    """
    with _asked_to_end() as is_asked:
        try:
            for server in servers:
                server.start()
            if _wait_until_ready(servers, ready_url, is_asked):
                on_ready()
            while not is_asked():
                for server in servers:
                    server.keep_running()
                time.sleep(_POLLING_SECONDS)
        finally:
            _end(servers, grace_seconds)


def _wait_until_ready(
    servers: Sequence[Server], ready_url: str, is_asked: Callable[[], bool]
) -> bool:
    deadline = time.monotonic() + _READY_SECONDS
    while not is_asked():
        if _answers(ready_url):
            return True
        if time.monotonic() > deadline:
            raise ServerError(f"{ready_url} did not answer within {_READY_SECONDS:.0f} s")
        for server in servers:
            server.require_running()
        time.sleep(_POLLING_SECONDS)
    return False


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2.0) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _end(servers: Sequence[Server], grace_seconds: float) -> None:
    deadline = time.monotonic() + grace_seconds
    for server in servers:
        server.ask_to_end()
    for server in servers:
        server.end(deadline - time.monotonic())


def _ending(exit_code: int) -> str:
    if exit_code < 0:
        return f"killed by {signal.Signals(-exit_code).name}"
    return f"exit code {exit_code}"


@contextlib.contextmanager
def _asked_to_end() -> Iterator[Callable[[], bool]]:
    asked: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        asked.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
