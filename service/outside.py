"""Requests to hosts outside the service, which the operator has allowed.

A request is sent only if the host's name is on the list of allowed hosts and each of its addresses
is public or within an allowed network. The connection is made to an address that was checked: the
name is not looked up again, because it could then resolve to another address. Redirects are not
followed, and proxies from the environment are not used.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Sequence
from functools import cached_property
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpx

from gcvae.errors import Problem
from service.errors import OutsideError, RequestError
from service.settings import MEBIBYTE, ServiceSettings, variable

# httpx logs URLs, which may contain secrets.
logging.getLogger("httpx").setLevel(logging.WARNING)

_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class AllowedHosts:
    """Checks URLs and sends requests to allowed hosts.

    Args:
        hosts: Names of allowed hosts; `*.example.com` allows all names that end with
            `.example.com`.
        networks: Networks of non-public addresses that may be reached.
        timeout_seconds: Time limit for connecting, and for each wait to send or receive data.
    """

    def __init__(
        self, hosts: Sequence[str], networks: Sequence[Network], timeout_seconds: float
    ) -> None:
        self._hosts = [host.lower() for host in hosts]
        self._networks = networks
        self._timeout_seconds = timeout_seconds

    @classmethod
    def of(cls, settings: ServiceSettings) -> AllowedHosts:
        """Returns the instance for the hosts and networks in the service's settings."""
        return cls(
            settings.outside_hosts, settings.outside_networks, settings.outside_timeout_seconds
        )

    @cached_property
    def _client(self) -> httpx.AsyncClient:
        # Connections are not reused: the certificate was checked for one name of the address only.
        return httpx.AsyncClient(
            timeout=self._timeout_seconds,
            follow_redirects=False,
            trust_env=False,
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def close(self) -> None:
        """Closes all connections."""
        await self._client.aclose()

    def require_allowed(self, url: str, pointer: str) -> None:
        """Checks the syntax of a URL and that its host is allowed, without a DNS lookup.

        Args:
            pointer: JSON pointer to the URL in the request body, for the error.

        Raises:
            RequestError: The URL is invalid, or its host is not allowed.
        """
        try:
            self.parse(url)
        except OutsideError as error:
            problem = Problem(str(error), pointer=pointer, expected=error.expected)
            raise RequestError(problem) from None

    async def post(self, url: str, body: bytes, headers: dict[str, str]) -> int:
        """Sends a POST request and returns the status of the response, whose body is not read.

        Raises:
            OutsideError: The URL or an address of its host is not allowed.
            httpx.HTTPError: The host cannot be reached, or does not answer in time.
        """
        response = await self._send("POST", url, body, headers)
        await response.aclose()
        return response.status_code

    async def fetch(
        self, method: str, url: str, headers: dict[str, str], body: bytes = b""
    ) -> tuple[int, bytes]:
        """Sends a request and returns (status, body) of the response.

        Raises:
            OutsideError: The URL or an address of its host is not allowed, or the response body has
                more than a mebibyte.
            httpx.HTTPError: The host cannot be reached, or does not answer in time.
        """
        response = await self._send(method, url, body, headers)
        content = bytearray()
        try:
            async for part in response.aiter_bytes():
                content += part
                if len(content) > MEBIBYTE:
                    raise OutsideError("the response is too long", f"at most {MEBIBYTE} bytes")
        finally:
            await response.aclose()
        return response.status_code, bytes(content)

    async def _send(
        self, method: str, url: str, body: bytes, headers: dict[str, str]
    ) -> httpx.Response:
        parts = self.parse(url)
        host, port = str(parts.hostname), port_of(parts)
        try:
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise _unknown(host) from None
        address = self._checked(host, found)
        self.require_encrypted(parts.scheme, address)
        shown = f"[{address}]" if address.version == 6 else str(address)
        pinned = parts._replace(netloc=f"{shown}:{port}").geturl()
        request = self._client.build_request(
            method,
            pinned,
            content=body,
            headers=headers | {"Host": parts.netloc},
            extensions={"sni_hostname": host},
        )
        return await self._client.send(request, stream=True)

    def parse(self, url: str) -> SplitResult:
        """Parses a URL, checks it without a DNS lookup, and returns its parts.

        Raises:
            OutsideError: The URL is invalid, or its host is not allowed.
        """
        try:
            parts = urlsplit(url)
            host, _ = (parts.hostname or "").lower(), parts.port
        except ValueError:
            raise OutsideError("this is not a URL", "https://{host}/{path}") from None
        if parts.scheme not in ("https", "http") or not host or any(c <= " " for c in url):
            raise OutsideError("this is not the URL of a web server", "https://{host}/{path}")
        if parts.scheme == "http" and not self._networks:
            raise OutsideError(
                "http is not encrypted",
                f"https, or http within the networks of {variable('outside_networks')}",
            )
        if parts.fragment:
            raise OutsideError("the URL has a fragment (#…)", "a URL without one")
        if parts.username is not None or parts.password is not None:
            raise OutsideError("the URL contains a user name or password", "a URL without them")
        self.require_host(host)
        return parts

    def require_host(self, host: str) -> None:
        """Checks that a host is on the list of allowed hosts, without a DNS lookup.

        Raises:
            OutsideError: The host is not on the list.
        """
        if not any(_matches(host.lower(), allowed) for allowed in self._hosts):
            listed = ", ".join(self._hosts) or "none"
            raise OutsideError(
                f"host {host!r} is not allowed",
                f"a host of {variable('outside_hosts')}, which lists {listed}",
            )

    def address_of(self, host: str, port: int) -> Address:
        """Looks up the IP addresses of a host and checks them all. Returns the first one. Blocks.

        Raises:
            OutsideError: The name is unknown, or one of the addresses is not allowed.
        """
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise _unknown(host) from None
        return self._checked(host, found)

    def require_encrypted(self, scheme: str, address: Address) -> None:
        """Checks that an unencrypted request goes to an address within an allowed network.

        Raises:
            OutsideError: The scheme is http, and the address is not within an allowed network.
        """
        if scheme == "http" and not self.is_within_networks(address):
            raise OutsideError("http is not encrypted", "https for a public address")

    def _checked(self, host: str, found: Sequence[tuple[Any, ...]]) -> Address:
        addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
        for address in addresses:
            if not self._may_reach(address):
                raise OutsideError(
                    f"host {host!r} has an address that is not public",
                    f"a public address, or one within {variable('outside_networks')}",
                )
        return addresses[0]

    def is_within_networks(self, address: Address) -> bool:
        """Returns whether an address is within the networks that the operator has allowed."""
        return any(address in network for network in self._networks)

    def _may_reach(self, address: Address) -> bool:
        if self.is_within_networks(address):
            return True
        inner = _embedded(address)
        if inner is not None:
            return self._may_reach(inner)
        return address.is_global and not address.is_multicast


def port_of(parts: SplitResult) -> int:
    """Returns the port in the URL of a web server, by default that of its scheme (443 or 80)."""
    return parts.port or (443 if parts.scheme == "https" else 80)


def _unknown(host: str) -> OutsideError:
    return OutsideError(f"the name {host!r} is unknown", "a name with an address")


def _matches(host: str, allowed: str) -> bool:
    return host.endswith(allowed[1:]) if allowed.startswith("*.") else host == allowed


def _embedded(address: Address) -> ipaddress.IPv4Address | None:
    """Returns the IPv4 address in an IPv6 address (NAT64, IPv4-mapped, 6to4, Teredo), or None."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (None if teredo is None else teredo[1])
