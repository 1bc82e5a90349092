"""Sends requests to the service, and repeats those that are safe to repeat."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import httpx

from gcvae_client.errors import (
    BusyError,
    ClientError,
    Document,
    IncompleteError,
    ProblemError,
    UnreachableError,
    problem_error,
)

Body = Callable[[ExitStack], dict[str, Any]]
"""Function that returns httpx's arguments for a request's body. It is called each time the request
is sent; files that it opens are closed by the ExitStack."""

_KEY_BUSY = "urn:gcvae:problem:idempotency-key-busy"
_LONGEST_PAUSE_SECONDS = 60.0


@dataclass(frozen=True)
class Call:
    """One call of the REST API.

    Attributes:
        method: HTTP method.
        path: Path of the URL.
        body: Function that returns httpx's arguments for the body; None if there is no body, or
            `json` is the body.
        json: JSON value to send as the body; None if there is none.
        params: Query parameters; parameters with the value None are left out.
        creates: Whether the call creates a resource. Then it sends an Idempotency-Key header, so
            that a repeated call does not create a second one.
        key: Value of the Idempotency-Key header.
    """

    method: str
    path: str
    body: Body | None = None
    json: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    creates: bool = False
    key: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def can_repeat(self) -> bool:
        """Whether the call is safe to repeat: its repetition creates nothing a second time."""
        return self.method != "POST" or self.creates

    def all_headers(self) -> dict[str, str]:
        """Returns the headers, with an Idempotency-Key if the call creates a resource."""
        return self.headers | ({"Idempotency-Key": self.key} if self.creates else {})


class Connection:
    """Connection to one service, which repeats failed calls.

    Args:
        http: HTTP client with the address of the service.
        retries: How often a call is repeated if the service does not respond or is busy.
    """

    def __init__(self, http: httpx.Client, retries: int) -> None:
        self.http = http
        self._retries = retries

    def request(self, call: Call) -> httpx.Response:
        """Returns the complete response to a call; status 304 (not modified) is not an error.

        Raises:
            UnreachableError: The service does not respond.
            ProblemError: The service responds with an error.
            IncompleteError: The connection broke off during the response.
        """
        with self.stream(call) as response:
            response.read()
            return response

    @contextmanager
    def stream(self, call: Call) -> Iterator[httpx.Response]:
        """Context manager that yields the response to a call before its body is read.

        Raises:
            UnreachableError: The service does not respond.
            ProblemError: The service responds with an error.
            IncompleteError: The connection broke off during the response.
        """
        response = self._send_until_answered(call)
        try:
            yield response
        except httpx.TransportError as error:
            message = f"the answer to {call.method} {call.path} broke off: {error}"
            raise IncompleteError(message) from error
        finally:
            response.close()

    def download(self, call: Call, file: BinaryIO) -> None:
        """Writes the response to an empty file. After an interruption, only the missing bytes are
        requested.

        Raises:
            IncompleteError: The connection broke off and the download cannot be resumed, or the
                checksum of the file is wrong.
        """
        tag, n_failed = "", 0
        while True:
            start = file.tell()
            asked = {"Range": f"bytes={start}-", "If-Range": tag} if tag else {}
            headers = call.headers | {"Accept-Encoding": "identity"} | asked
            try:
                with self.stream(replace(call, headers=headers)) as response:
                    _begin_at(file, response)
                    tag = _entity_tag(response) if call.method == "GET" else ""
                    file.writelines(response.iter_raw())
                break
            except IncompleteError as error:
                n_failed = 0 if file.tell() > start else n_failed + 1
                if not tag or n_failed > self._retries:
                    raise
                time.sleep(_pause_seconds(error, n_failed))
        _verify(file, tag)

    def _send_until_answered(self, call: Call) -> httpx.Response:
        for attempt in range(self._retries):
            try:
                return self._send(call)
            except ClientError as error:
                if not _may_pass(error, call):
                    raise
                time.sleep(_pause_seconds(error, attempt))
        return self._send(call)

    def _send(self, call: Call) -> httpx.Response:
        with ExitStack() as files:
            arguments = {"json": call.json} if call.body is None else call.body(files)
            headers = call.all_headers() | arguments.pop("headers", {})
            params = {name: value for name, value in call.params.items() if value is not None}
            request = self.http.build_request(
                call.method, call.path, headers=headers, params=params, **arguments
            )
            try:
                response = self.http.send(request, stream=True)
            except httpx.TransportError as error:
                raise UnreachableError(self._silence(error)) from error
        if response.is_success or response.status_code == httpx.codes.NOT_MODIFIED:
            return response
        raise problem_error(response.status_code, _read_problem(response), _retry_after(response))

    def _silence(self, error: httpx.TransportError) -> str:
        address = str(self.http.base_url)
        is_plain = "WRONG_VERSION_NUMBER" in str(error)
        way_out = "; the server uses http:// and not https://" if is_plain else ""
        return f"{address} does not respond: {error}{way_out}"


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Context manager that yields a temporary file, which is renamed to `path` at the end.

    If the block raises, the file is deleted, so that `path` is complete or unchanged.

    Raises:
        FileNotFoundError: The folder of `path` does not exist.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "folder not found", str(target.parent))
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        with partial.open("w+b") as file:
            yield file
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _entity_tag(response: httpx.Response) -> str:
    """Returns the response's ETag; '' if the download cannot be resumed by range requests."""
    tag: str = response.headers.get("ETag", "")
    has_ranges = response.headers.get("Accept-Ranges") == "bytes" and tag.startswith('"')
    return tag if has_ranges else ""


def _begin_at(file: BinaryIO, response: httpx.Response) -> None:
    """Empties the file if the response is complete. Raises an IncompleteError if the response is
    partial and does not continue where the file ends."""
    if response.status_code != httpx.codes.PARTIAL_CONTENT:
        file.seek(0)
        file.truncate()
        return
    found = response.headers.get("Content-Range", "")
    if not found.startswith(f"bytes {file.tell()}-"):
        raise IncompleteError(f"bytes from {file.tell()} on were asked, and {found!r} came")


def _verify(file: BinaryIO, tag: str) -> None:
    """Raises an IncompleteError if the file does not have the SHA-256 checksum in `tag`, the ETag
    of the response; checks nothing if the ETag is not a checksum."""
    expected = tag.strip('"')
    if re.fullmatch(r"[0-9a-f]{64}", expected) is None:
        return
    file.seek(0)
    digest = hashlib.sha256()
    while chunk := file.read(1 << 20):
        digest.update(chunk)
    if digest.hexdigest() != expected:
        raise IncompleteError("the checksum of the download differs from that of the file")


def _may_pass(error: ClientError, call: Call) -> bool:
    """Returns whether it is safe to repeat the call, and its error may be temporary."""
    if isinstance(error, UnreachableError):
        return call.can_repeat
    is_key_busy = isinstance(error, ProblemError) and error.type == _KEY_BUSY
    return is_key_busy or isinstance(error, BusyError)


def _read_problem(response: httpx.Response) -> Document:
    try:
        problem = json.loads(response.read())
    except (ValueError, httpx.TransportError):
        problem = None
    finally:
        response.close()
    return problem if isinstance(problem, dict) else {}


def _retry_after(response: httpx.Response) -> float | None:
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None


def _pause_seconds(error: ClientError, attempt: int) -> float:
    asked = getattr(error, "retry_after_seconds", None)
    pause = 0.25 * 2**attempt if asked is None else asked
    return float(min(pause, _LONGEST_PAUSE_SECONDS))
