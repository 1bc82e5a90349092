"""The trespasser: with each workspace's key it asks for what the other one owns, all the time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import permutations
from random import Random

import httpx

from tests.faults.deployment import Deployment
from tests.faults.workload import Workload, client_of

_PAUSE_SECONDS = 0.1
_AWAY = (429, 503)
"""Answers that say nothing of a record."""


class Trespasser:
    """Asks for foreign records; a context in which a thread does so while faults come.

    Attributes:
        crossed: calls whose answers were not what a workspace may get.
        n_calls: how many calls were answered about a record.
    """

    def __init__(
        self, deployment: Deployment, workloads: Sequence[Workload], random: Random
    ) -> None:
        self.crossed: list[str] = []
        self.n_calls = 0
        self._workloads, self._random = workloads, random
        self._clients = {
            workload.workspace: client_of(deployment, workload.workspace) for workload in workloads
        }
        self._nobody = httpx.Client(base_url=deployment.url, timeout=30)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._trespass, name="trespasser", daemon=True)

    def __enter__(self) -> Trespasser:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        for client in (*self._clients.values(), self._nobody):
            client.close()

    def sweep(self) -> list[str]:
        """Ask for each record of each workspace; to be called when the servers are well."""
        return [
            found
            for mine, theirs in permutations(self._workloads, 2)
            for path in theirs.paths
            if (found := self._ask(mine, theirs, "GET", path)) is not None
        ]

    def _trespass(self) -> None:
        while not self._ended.wait(_PAUSE_SECONDS):
            mine, theirs = self._random.sample(list(self._workloads), 2)
            path = self._random.choice(theirs.paths)
            call = self._random.choice([("GET", path), _harm(path)])
            if (found := self._ask(mine, theirs, *call)) is not None:
                self.crossed.append(found)

    def _ask(self, mine: Workload, theirs: Workload, method: str, path: str) -> str | None:
        """What is wrong with the answer to a stranger, to nobody, or to the owner, if anything."""
        stranger, owner = (self._clients[workload.workspace] for workload in (mine, theirs))
        calls = [(stranger, 404), (self._nobody, 401)]
        if method == "GET":
            calls.append((owner, 200))
        for client, expected in calls:
            got = self._status(client, method, path)
            if got not in (None, expected):
                return f"{method} {path} of {theirs.workspace}: {got}, not {expected}"
        return None

    def _status(self, client: httpx.Client, method: str, path: str) -> int | None:
        try:
            status = client.request(method, path).status_code
        except httpx.TransportError:
            return None  # the API is away, which is what some faults are
        if status in _AWAY:
            return None
        self.n_calls += 1
        return status


def _harm(path: str) -> tuple[str, str]:
    """A call that takes a record from its owner; let through, it is seen at the end as a loss."""
    return ("POST", f"{path}/cancel") if "/jobs/" in path else ("DELETE", path)
