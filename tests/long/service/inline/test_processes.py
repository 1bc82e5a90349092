"""Processes of inline work behind a running service: killed, orphaned, ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from catalog import upgrade
from tests.lengths import first_of
from tests.running_service import Running, assert_problem, inline_pids, settings_in
from tests.service.test_access import SERVE
from tests.wordings import same_wording


def wait_until(is_so: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < ends_at
        time.sleep(0.01)


def ask(service: Running, model: dict[str, Any], **more: Any) -> httpx.Response:
    path = f"/v1/models/{model['id']}/samples"
    return service.http.post(path, json={"rows": 50, "seed": 1} | more)


def test_a_killed_process_is_a_problem_and_the_next_request_finds_a_fresh_one(
    service: Running, model: dict[str, Any]
) -> None:
    before = ask(service, model)
    (pid, *others) = inline_pids()
    for each in (pid, *others):
        os.kill(each, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask, service, model)
        n_places = service.settings.inline_workers + service.settings.inline_waiting
        wait_until(lambda: service.resources.inline.n_free < n_places)
        time.sleep(0.2)  # from a place in the line to the process
        for each in (pid, *others):
            os.kill(each, signal.SIGKILL)
        problem = assert_problem(asked.result(), 503, "process-died")
    psutil.wait_procs([psutil.Process(each) for each in others if psutil.pid_exists(each)], 60)
    same_wording(problem["detail"])
    assert asked.result().headers["Retry-After"] == "1"
    after = ask(service, model)
    assert after.status_code == 200
    assert after.content == before.content
    assert pid not in inline_pids()
    assert "gcvae_inline_process_deaths_total 0.0" not in service.http.get("/metrics").text


@pytest.fixture
def process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A service in a process of its own, which has started one of inline work."""
    upgrade(settings_in(tmp_path).database())
    environment = os.environ | {
        "GCVAE_HOME_DIR": str(tmp_path), "GCVAE_PORT": "0", "TMPDIR": str(tmp_path),
    }  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-c", SERVE], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert httpx.get(f"{url}/readyz").json()["status"] == "ready"
        wait_until(lambda: len(below(psutil.Process(process.pid))) == 2)  # it, and its server
        yield process
        process.kill()


def below(process: psutil.Process) -> list[psutil.Process]:
    return process.children(recursive=True)


@pytest.mark.parametrize("number", first_of(signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
def test_however_a_service_ends_its_processes_end_too(
    process: subprocess.Popen[str], number: signal.Signals, tmp_path: Path
) -> None:
    children = below(psutil.Process(process.pid))
    process.send_signal(number)
    if number != signal.SIGKILL:
        assert process.wait(15) in (0, -number)
    _, alive = psutil.wait_procs(children, timeout=15)
    assert not alive
    assert not list(tmp_path.glob("gcvae-process-*"))
