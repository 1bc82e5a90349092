"""Answers that end before their end: the connection breaks, and the log says so in a line each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.running_service import Running, assert_problem
from tests.service.test_access import SERVE
from tests.wordings import same_wording

MOST_SECONDS = 30


@contextmanager
def serving(service: Running, log: Path) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """A process on the records and bytes of a service, which streams whatever is asked."""
    environment = os.environ | {
        "GCVAE_HOME_DIR": str(service.settings.home_dir), "GCVAE_PORT": "0",
        "GCVAE_INLINE_WORKERS": "1", "GCVAE_MAX_INLINE_SAMPLE_ROWS": "9000000",
        "GCVAE_SHUTDOWN_SECONDS": "6", "GCVAE_LOG_FORMAT": "json",
    }  # fmt: skip
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-c", SERVE],
            env=environment, stdout=subprocess.PIPE, stderr=errors, text=True,
        ) as process,
    ):  # fmt: skip
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            with httpx.Client(base_url=url, timeout=MOST_SECONDS) as http:
                yield process, http
        finally:
            process.kill()


@contextmanager
def streamed(http: httpx.Client, model: dict[str, Any], name: str) -> Iterator[Iterator[bytes]]:
    """The chunks of an answer that takes long and has begun."""
    asked = {"rows": 9_000_000, "seed": 1}
    path, headers = f"/v1/models/{model['id']}/samples", {"X-Request-ID": name}
    with http.stream("POST", path, json=asked, headers=headers) as response:
        assert response.status_code == 200
        chunks = response.iter_raw()
        next(chunks)
        yield chunks


def is_cut(chunks: Iterator[bytes]) -> bool:
    """True where the reader can tell that the answer is not whole."""
    with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
        for _ in chunks:
            pass
    return True


def inline_process(service: subprocess.Popen[str]) -> psutil.Process:
    """The one that the fork server has forked last."""
    [server] = [
        child
        for child in psutil.Process(service.pid).children()
        if "fork_server" in " ".join(child.cmdline())
    ]
    return max(server.children(), key=lambda child: child.create_time())


@pytest.fixture(scope="module")
def events(
    service: Running, model: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, list[dict[str, Any]]], str, httpx.Response]:
    """The lines of each request, the whole log, and what a request got that was not begun.

    A client leaves; a process of inline work is killed; and SIGTERM finds an answer that cannot
    go on, and a request that waits behind it.
    """
    log = tmp_path_factory.mktemp("cut") / "log"
    with serving(service, log) as (process, http), ThreadPoolExecutor(1) as threads:
        with streamed(http, model, "left"):
            pass
        with streamed(http, model, "killed") as chunks:
            inline_process(process).kill()
            assert is_cut(chunks)
        with streamed(http, model, "stopped") as chunks:
            inline_process(process).suspend()
            waiting = threads.submit(ask_few, http, model)
            time.sleep(2)  # until it waits behind the suspended process, on a busy machine too
            process.send_signal(signal.SIGTERM)
            assert is_cut(chunks)
        assert process.wait(MOST_SECONDS) in (0, -signal.SIGTERM)
        refused = waiting.result()
    lines: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in map(json.loads, log.read_text().splitlines()):
        lines[line.get("request", "")].append(line)
    return lines, log.read_text(), refused


def ask_few(http: httpx.Client, model: dict[str, Any]) -> httpx.Response:
    headers = {"X-Request-ID": "waited"}
    return http.post(f"/v1/models/{model['id']}/samples", json={"rows": 5}, headers=headers)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("left", "the client left"),
        ("killed", "the process that handled this request was killed"),
        ("stopped", "the service is shutting down"),
    ],
)
def test_an_answer_that_is_cut_off_has_one_line_that_says_why(
    events: Any, name: str, why: str
) -> None:
    lines, _, _ = events
    [line] = [line for line in lines[name] if "status" in line]
    assert (line["event"], line["status"]) == ("answer cut off", 200)
    assert line["cut"].startswith(why)
    assert line["path"].endswith("/samples")


def test_a_killed_process_has_a_line_with_the_request_s_id(events: Any) -> None:
    lines, _, _ = events
    assert len(lines["killed"]) == 2
    assert "of inline work died" in lines["killed"][0]["event"]


def test_none_of_it_leaves_a_traceback(events: Any) -> None:
    _, log, _ = events
    assert "Traceback" not in log
    assert "ASGI" not in log


def test_a_request_that_had_no_answer_yet_gets_a_problem(events: Any) -> None:
    lines, _, refused = events
    problem = assert_problem(refused, 503, "stopping")
    same_wording(problem["detail"])
    assert refused.headers["Retry-After"] == "1"
    assert lines["waited"][-1]["status"] == 503
