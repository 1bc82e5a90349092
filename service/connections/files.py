"""Reads and writes files of web servers and buckets, without following redirects.

Requests to a bucket are presigned (AWS Signature Version 4), so that the same HTTP client can send
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO, Literal
from urllib.parse import quote

import httpx
import obstore
from obstore.store import S3Store

from gcvae.errors import InputError, Problem
from gcvae_sources.errors import SourceError, TargetError
from service.connections.destinations import BucketDestination, DecryptedConnection, WebDestination
from service.errors import TooLargeError

_VALID = timedelta(minutes=15)
_CODE = re.compile(rb"<Code>(\w{1,60})</Code>")
_CODE_BYTES = 4096
_NOTHING_THERE = (404, 410)
Method = Literal["GET", "HEAD", "PUT"]


@dataclass(frozen=True)
class Files:
    """Client that reads and writes the files of a web server or bucket.

    Args:
        destination: The web server or bucket.
        connection: The connection with its password.
        timeout_seconds: Time limit for connecting, and for each wait to send or receive data.
    """

    destination: WebDestination | BucketDestination
    connection: DecryptedConnection
    timeout_seconds: float

    def read(self, key: str, path: Path, max_bytes: int) -> None:
        """Copies a file of the web server or bucket to a local file.

        Args:
            key: Path of the file to copy, below the connection's URL.
            path: Path of the local file.
            max_bytes: Maximum size of the file.

        Raises:
            SourceError: The host refuses the request.
            TooLargeError: The file has more than `max_bytes` bytes.
            httpx.HTTPError: The host cannot be reached, or does not answer in time.
        """
        with self._asked("GET", key) as response, path.open("wb") as target:
            _require_success(response, SourceError)
            n_bytes = 0
            for chunk in response.iter_bytes():
                n_bytes += len(chunk)
                if n_bytes > max_bytes:
                    what = f"the file has more than {max_bytes} bytes"
                    raise TooLargeError(what, max_bytes, "max_upload_bytes")
                target.write(chunk)

    def write(self, key: str, file: BinaryIO, n_bytes: int, *, may_replace: bool) -> None:
        """Writes a file into a bucket, completely or not at all.

        Args:
            key: Path of the new file, below the connection's URL.
            file: Content of the new file.
            n_bytes: Size of `file`.
            may_replace: Whether an existing file may be replaced.

        Raises:
            TargetError: The store refuses the request, or a file with this key exists and
                `may_replace` is False.
            httpx.HTTPError: The host cannot be reached, or does not answer in time.
        """
        headers = {"Content-Length": str(n_bytes)}
        if not may_replace:
            with self._asked("HEAD", key) as response:  # some stores ignore If-None-Match
                if response.status_code not in _NOTHING_THERE:
                    _require_success(response, TargetError)
                    raise _in_use(key)
            headers["If-None-Match"] = "*"
        with self._asked("PUT", key, headers, file) as response:
            if response.status_code == httpx.codes.PRECONDITION_FAILED:
                raise _in_use(key)
            _require_success(response, TargetError)

    def examine(self) -> None:
        """Checks that the host answers and accepts the password.

        Raises:
            SourceError: The host refuses the request.
            httpx.HTTPError: The host cannot be reached, or does not answer in time.
        """
        with self._asked("GET", ".gcvae-connection-test") as response:
            code = _code(response)
            if not (response.is_success or _is_nothing_there(response, code)):
                raise _refusal(response, code, SourceError)

    @contextmanager
    def _asked(
        self,
        method: Method,
        key: str,
        headers: Mapping[str, str] | None = None,
        content: BinaryIO | None = None,
    ) -> Iterator[httpx.Response]:
        destination, password, auth = self.destination, self.connection.password, None
        sent = httpx.Headers({"Accept-Encoding": "identity", "User-Agent": "gcvae"})
        sent.update(headers)
        if isinstance(destination, BucketDestination):
            url = _presigned(destination, password, method, destination.key_of(key))
        else:
            url = destination.url_of(key)
            if destination.user is not None:
                auth = httpx.BasicAuth(destination.user, password or "")
            elif password is not None:
                sent["Authorization"] = f"Bearer {password}"
        with (
            httpx.Client(
                timeout=self.timeout_seconds, follow_redirects=False, trust_env=False
            ) as client,
            client.stream(method, url, headers=sent, content=content, auth=auth) as response,
        ):
            yield response


def _presigned(
    destination: BucketDestination, password: str | None, method: Method, key: str
) -> str:
    """Returns the URL of an object, with a signature if the bucket is not public."""
    if destination.access_key is None or password is None:
        return f"{destination.endpoint}/{destination.bucket}/{quote(key)}"
    store = S3Store(
        destination.bucket,
        config={
            "access_key_id": destination.access_key,
            "secret_access_key": password,
            "region": destination.region,
            "endpoint": destination.endpoint,
        },
        client_options={"allow_http": True},
        virtual_hosted_style_request=False,
    )
    return obstore.sign(store, method, key, _VALID)


def _require_success(response: httpx.Response, refusal: type[InputError]) -> None:
    if not response.is_success:
        raise _refusal(response, _code(response), refusal)


def _refusal(response: httpx.Response, code: str, refusal: type[InputError]) -> InputError:
    if response.is_redirect:
        expected = "a URL that leads to the file itself"
        return refusal(Problem("the host redirects, which is not followed", expected=expected))
    if _is_nothing_there(response, code):
        return refusal(
            Problem("there is no such file", "/key", expected="a file of the connection")
        )
    return refusal(f"the host refuses the request: {response.status_code} {code}".rstrip())


def _is_nothing_there(response: httpx.Response, code: str) -> bool:
    return response.status_code in _NOTHING_THERE and code != "NoSuchBucket"


def _code(response: httpx.Response) -> str:
    start = b""
    for chunk in response.iter_bytes():
        start += chunk
        if len(start) >= _CODE_BYTES:
            break
    found = _CODE.search(start)
    return "" if found is None else found[1].decode()


def _in_use(key: str) -> TargetError:
    problem = Problem(f"there is a file {key!r}", "/key", expected="a new one, or to replace it")
    return TargetError(problem)
