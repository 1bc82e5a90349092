"""Which hosts the service may reach: names on the list, with public or allowed addresses."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.connections.destinations import parse_destination
from service.errors import OutsideError, RequestError
from service.outside import AllowedHosts
from service.settings import ServiceSettings
from tests.servers.webhook_receiver import receiver

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8")]

NOT_URLS = [
    "", "hooks", "//example.com/x", "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/",
    "javascript:alert(1)", "https://", "https:///path", "https://exam ple.com/", "https://example.com/\n",
    "https://example.com:99999/", "https://[::1/", "dict://example.com:11211/", "unix:///run/x.sock",
]  # fmt: skip
NOT_LISTED = [
    "https://localhost/", "https://127.0.0.1/", "https://[::1]/", "https://0.0.0.0/", "https://127.1/",
    "https://2130706433/", "https://0x7f000001/", "https://017700000001/", "https://169.254.169.254/latest",
    "https://metadata.google.internal/", "https://10.0.0.1/", "https://192.168.1.1/", "https://172.16.0.1/",
    "https://[fd00::1]/", "https://[fe80::1]/", "https://[::ffff:127.0.0.1]/", "https://example.com.evil.org/",
    "https://evil.org/example.com", "https://evil.org#example.com", "https://evil.org?example.com",
    "https://notexample.com/", "https://sub.example.com/", "https://example.org/", "https://postgres:5432/",
    "https://redis:6379/", "https://example.com%00.evil.org/", "https://ⓔxample.net/",
]  # fmt: skip
NOT_CONNECTIONS = [
    "postgresql://example.com,evil.org/db", "postgresql:///db", "postgresql://%2Fvar%2Frun/db",
    "postgresql://example.com/db?host=evil.org", "postgresql://example.com/db?hostaddr=10.0.0.1",
    "postgresql://example.com/db?service=x", "postgresql://example.com/db?passfile=/etc/passwd",
    "postgresql://example.com/db?sslrootcert=/etc/passwd", "postgresql://example.com/db?sslmode=no",
    "postgresql://example.com/host=evil.org", "postgresql://example.com/postgres://evil.org/db",
    "postgresql://a:b@example.com/db", "postgresql://example.com@evil.org/db", "postgresql://[::1/db",
    "postgresql://me%00@example.com/db", "postgresql://example.com/d%00b", "mysql://a%0ab@example.com/db",
    "postgresql://example.com:x/db", "POSTGRESQL://evil.org/x",
    "postgresql+pg8000://example.com/db", "mysql+mysqldb://example.com/db", "oracle://example.com/db",
    "mysql://example.com/db?local_infile=1", "mysql://example.com/db?read_default_file=/etc/passwd",
    "mysql://example.com/db?unix_socket=/run/x", "mysql://evil.org/db", "mysql:///db",
    "sqlite:////etc/passwd", "sqlite:///../other.sqlite", "sqlite:///sub/../../other.sqlite",
    "sqlite:///link.sqlite", "sqlite://", "sqlite:///:memory:?uri=true", "sqlite:///file:x?uri=true",
    "sqlite:///.", "sqlite://example.com/x", "file:///etc/passwd", "/etc/passwd", "duckdb:///x",
    "s3://bucket/x?endpoint=http://169.254.169.254", "s3://bucket/x?endpoint=https://evil.org",
    "s3://bucket/x?endpoint=https://example.com/latest", "s3://bucket/x?endpoint=file:///etc",
    "s3://bucket/x?endpoint=https://me@example.com", "s3://AK:secret@bucket/x", "s3://b/x", "s3://../x",
    "s3://bucket/x?region=evil.org/", "s3://bucket/x?skip_signature=true", "gs://bucket/x",
    "https://example.com/x?token=y", "https://me:secret@example.com/", "https://example.com@evil.org/",
    "https://example.com:443@evil.org/", "https://evil.org\\@example.com/", "https://evil.org/@example.com",
]  # fmt: skip
NOT_PUBLIC = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "10.1.2.3", "172.16.9.9",
    "192.168.0.9", "169.254.169.254", "100.64.0.1", "192.0.0.1", "198.18.0.1",
    "224.0.0.1", "239.255.255.250", "255.255.255.255", "240.0.0.1", "::1",
    "::", "fe80::1", "fc00::1", "fd12:3456::1", "ff02::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::",
    "2001:db8::1",
]  # fmt: skip


def _sent(hosts: AllowedHosts, url: str) -> int:
    async def send() -> int:
        try:
            return await hosts.post(url, b"{}", {})
        finally:
            await hosts.close()

    return asyncio.run(send())


def _resolves(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Let every name have these addresses; returns the names that were looked up."""
    asked: list[str] = []

    async def getaddrinfo(_: Any, host: str, port: int, **__: Any) -> list[Any]:
        asked.append(host)
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses
        ]

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", getaddrinfo)
    return asked


@pytest.mark.parametrize("url", [*NOT_URLS, *NOT_LISTED])
def test_a_url_that_is_not_of_a_listed_host_is_refused_without_a_look_up(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    asked = _resolves(monkeypatch, "93.184.215.14")
    hosts = AllowedHosts(["example.com", "*.example.net"], LOOPBACK, 1.0)
    with pytest.raises(RequestError):
        hosts.require_allowed(url, "/url")
    with pytest.raises(OutsideError):
        _sent(hosts, url)
    assert asked == []


@pytest.mark.parametrize("url", [*NOT_URLS, *NOT_LISTED, *NOT_CONNECTIONS])
@pytest.mark.parametrize("form", ["{}", "s3://AK@bucket/x?endpoint={}", "postgresql://me@{host}/x"])
def test_a_connection_that_is_not_of_a_listed_host_is_refused_without_a_look_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str, form: str
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", None)
    (tmp_path / "link.sqlite").symlink_to("/etc/passwd")
    settings = ServiceSettings(connection_folder=tmp_path)
    hosts = AllowedHosts(["example.com", "*.example.net"], LOOPBACK, 1.0)
    host = url.partition("://")[2]
    with pytest.raises(OutsideError):
        parse_destination(form.format(url, host=host), hosts, settings)


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("postgresql://me@example.com/db", "example.com", 5432),
        ("postgres://example.com:6432/db?sslmode=verify-full", "example.com", 6432),
        ("mariadb://me@db.example.net/db", "db.example.net", 3306),
        ("https://me@example.com/tables/", "example.com", 443),
        ("s3://AK@bucket/x?endpoint=https://example.com:9000", "example.com", 9000),
        ("s3://AK@bucket?region=eu-central-1", "s3.eu-central-1.amazonaws.com", 443),
        ("sqlite:///sub/shop.sqlite", None, 0),
    ],
)
def test_a_connection_leads_to_one_host_and_port(
    tmp_path: Path, url: str, host: str | None, port: int
) -> None:
    hosts = AllowedHosts(["example.com", "*.example.net", "*.amazonaws.com"], [], 1.0)
    destination = parse_destination(url, hosts, ServiceSettings(connection_folder=tmp_path))
    assert (destination.host, destination.port) == (host, port)


def test_local_files_are_refused_unless_the_operator_allows_them() -> None:
    with pytest.raises(OutsideError, match="local files are not allowed"):
        parse_destination("sqlite:///shop.sqlite", AllowedHosts([], [], 1.0), ServiceSettings())


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_refused(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    for addresses in ([address], ["93.184.215.14", address]):
        asked = _resolves(monkeypatch, *addresses)
        with pytest.raises(OutsideError, match="not public"):
            _sent(AllowedHosts(["example.com"], [], 1.0), "https://example.com/hook")
        assert asked == ["example.com"]
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 443)) for one in addresses]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, found=found, **__: found)
        with pytest.raises(OutsideError, match="not public"):
            AllowedHosts(["example.com"], [], 1.0).address_of("example.com", 443)


def test_a_listed_host_is_reached_where_its_network_is_allowed() -> None:
    with receiver() as found:
        url = f"{found.url}/hook"
        assert _sent(AllowedHosts(["127.0.0.1"], LOOPBACK, 5.0), url) == 204
        assert found.received[0][1]["host"] == url.split("/")[2]
        with pytest.raises(OutsideError, match="not encrypted"):
            _sent(AllowedHosts(["127.0.0.1"], [], 5.0), url)
        assert len(found.received) == 1


def test_http_is_for_allowed_networks_only(monkeypatch: pytest.MonkeyPatch) -> None:
    _resolves(monkeypatch, "93.184.215.14")
    with pytest.raises(OutsideError, match="not encrypted"):
        _sent(AllowedHosts(["example.com"], LOOPBACK, 1.0), "http://example.com/hook")


def test_the_connection_is_made_to_the_address_that_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name that resolves differently a moment later reaches nothing else."""
    with receiver() as found:
        port = found.url.rpartition(":")[2]
        asked = _resolves(monkeypatch, "127.0.0.1")
        hosts = AllowedHosts(["*.example.com"], LOOPBACK, 5.0)
        assert _sent(hosts, f"http://hooks.example.com:{port}/hook") == 204
        assert asked[0] == "hooks.example.com"
        assert set(asked[1:]) <= {"127.0.0.1"}
        assert found.received[0][1]["host"] == f"hooks.example.com:{port}"


def test_a_redirect_is_not_followed() -> None:
    with receiver() as found:
        found.answers["/hook"] = 302
        assert _sent(AllowedHosts(["127.0.0.1"], LOOPBACK, 5.0), f"{found.url}/hook") == 302
        assert [path for path, _, _ in found.received] == ["/hook"]


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver() as found, receiver() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("all_proxy", proxy.url)
        assert _sent(AllowedHosts(["127.0.0.1"], LOOPBACK, 5.0), f"{found.url}/hook") == 204
        assert (len(found.received), len(proxy.received)) == (1, 0)


def test_a_receiver_that_hangs_is_given_up() -> None:
    with receiver() as found:
        found.answers["/hook"] = lambda: __import__("time").sleep(3) or 204
        with pytest.raises(httpx.TimeoutException):
            _sent(AllowedHosts(["127.0.0.1"], LOOPBACK, 0.3), f"{found.url}/hook")


def test_the_error_names_the_setting_and_the_listed_hosts() -> None:
    hosts = AllowedHosts(["example.com"], [], 1.0)
    with pytest.raises(RequestError) as caught:
        hosts.require_allowed("https://example.org/x", "/url")
    [problem] = caught.value.problems
    assert problem.pointer == "/url"
    assert problem.expected == "a host of GCVAE_OUTSIDE_HOSTS, which lists example.com"
