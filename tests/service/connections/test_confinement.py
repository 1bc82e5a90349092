"""The process of a connection reaches the host of the connection and nothing else."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import httpx
import pytest

from gcvae_sources.errors import SourceError
from runtime.settings import forget_environment
from service.connections.confinement import confine
from service.connections.destinations import DecryptedConnection
from service.connections.work import TableLocation, examine, fetch
from service.errors import OutsideError
from service.outside import AllowedHosts
from service.settings import ServiceSettings
from service.table_process import read_isolated
from tests.servers.servers import PostgresServer
from tests.servers.web_server import Page, web_server

SETTINGS = ServiceSettings(
    outside_hosts=("127.0.0.1", "localhost", "moving.test"),
    outside_networks=("127.0.0.0/8",),  # type: ignore[arg-type]
    outside_timeout_seconds=2.0,
)
TABLE = b"a,b\n" + b"".join(b"%d,%d\n" % (i % 9, i % 2) for i in range(60))


def in_a_process(work: Callable[[BinaryIO], Any], **options: Any) -> Any:
    """What a function returns in a process as those of connections."""
    with tempfile.TemporaryFile() as file:
        return read_isolated(work, file, SETTINGS, **options)


def reach_others(_: BinaryIO, port: int, other: int) -> list[str]:
    """Try to leave a confined process in several ways; returns those that succeed."""
    confine("localhost", AllowedHosts.of(SETTINGS).address_of("127.0.0.1", port))
    socket.create_connection(("localhost", port), timeout=2).close()
    ways: dict[str, Callable[[], object]] = {
        "name": lambda: socket.create_connection(("localhost.localdomain", other), timeout=2),
        "address": lambda: socket.create_connection(("127.0.0.2", other), timeout=2),
        "bare": lambda: socket.socket().connect(("127.0.0.2", other)),
        "connect_ex": lambda: socket.socket().connect_ex(("127.0.0.2", other)),
        "six": lambda: socket.socket(socket.AF_INET6).connect(("::1", other)),
        "mapped": lambda: socket.socket(socket.AF_INET6).connect(("::ffff:127.0.0.2", other)),
        "packet": lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.2", other)),
        "local": lambda: socket.socket(socket.AF_UNIX).connect("/run/docker.sock"),
        "metadata": lambda: httpx.get("http://169.254.169.254/", timeout=2),
    }
    succeeded = []
    for way, attempt in ways.items():
        try:
            attempt()
        except OutsideError:
            continue
        except Exception as error:
            succeeded.append(f"{way}: {error!r}")
        else:
            succeeded.append(way)
    return succeeded


def test_a_confined_process_reaches_its_host_only() -> None:
    with web_server() as ours, web_server("127.0.0.2") as others:
        work = partial(reach_others, port=ours.port, other=others.port)
        assert in_a_process(work) == []
        assert others.asked == []


def fetch_while_the_name_moves(file: BinaryIO, port: int) -> tuple[int, list[str]]:
    """Fetch from a name whose address is another one each time that it is asked for."""
    addresses = iter(["127.0.0.1", *["127.0.0.2"] * 9])
    resolve, asked = socket.getaddrinfo, []

    def moving(name: Any, *arguments: Any, **options: Any) -> Any:
        asked.append(str(name))
        return resolve(next(addresses) if name == "moving.test" else name, *arguments, **options)

    socket.getaddrinfo = moving  # type: ignore[assignment]
    connection = DecryptedConnection("moving", f"http://moving.test:{port}", None)
    fetch(file, connection, TableLocation(key="table.csv"), SETTINGS)
    return file.tell(), asked


def test_a_name_that_moves_after_the_check_reaches_nothing_else() -> None:
    with web_server() as ours, web_server("127.0.0.2", ours.port) as others:
        ours.pages["/table.csv"] = others.pages["/table.csv"] = Page(TABLE)
        work = partial(fetch_while_the_name_moves, port=ours.port)
        n_bytes, asked = in_a_process(work, mode="r+b")
    assert n_bytes == len(TABLE)
    assert asked.count("moving.test") == 1
    assert [headers["host"] for _, headers in ours.asked] == [f"moving.test:{ours.port}"]
    assert others.asked == []


def examine_while_the_name_is_ours(file: BinaryIO, url: str) -> list[str] | None:
    """Examine a database whose name only this process knows."""
    resolve = socket.getaddrinfo

    def ours(name: Any, *arguments: Any, **options: Any) -> Any:
        return resolve("127.0.0.1" if name == "moving.test" else name, *arguments, **options)

    socket.getaddrinfo = ours  # type: ignore[assignment]
    return examine(file, DecryptedConnection("moving", url, None), SETTINGS)


def test_the_driver_of_a_database_gets_the_address_that_was_checked(
    postgres_server: PostgresServer,
) -> None:
    """It is in C: it would not find the name."""
    url = postgres_server.create_database("confined").replace("127.0.0.1", "moving.test")
    assert in_a_process(partial(examine_while_the_name_is_ours, url=url)) == []


def examine_at(file: BinaryIO, url: str, addresses: list[str]) -> None:
    """Examine a connection whose host has these addresses; nothing may be connected to."""

    def resolves(_: Any, port: int, *__: Any, **___: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (found, port)) for found in addresses]

    socket.getaddrinfo = resolves
    examine(file, DecryptedConnection("moving", url, "pw"), SETTINGS)


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("https://moving.test/x", ["127.0.0.1", "192.168.0.1"]),
        ("https://moving.test/x", ["::1"]),
        ("https://moving.test/x", ["fe80::1"]),
        ("https://moving.test/x", ["169.254.169.254"]),
        ("postgresql://me@moving.test/db", ["10.0.0.1"]),
        ("mysql://me@moving.test/db", ["10.0.0.1"]),
        ("s3://AK@bucket?endpoint=https://moving.test", ["10.0.0.1"]),
    ],
)
def test_an_address_that_is_not_allowed_is_not_connected_to(url: str, addresses: list[str]) -> None:
    with pytest.raises(SourceError, match="has an address that is not public"):
        in_a_process(partial(examine_at, url=url, addresses=addresses))


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://moving.test/x", "http is not encrypted"),
        ("s3://AK@bucket?endpoint=http://moving.test", "http is not encrypted"),
        ("postgresql://me@moving.test/db?sslmode=prefer", "without encryption"),
        ("postgresql://me@moving.test/db?sslmode=disable", "without encryption"),
    ],
)
def test_connections_to_public_addresses_are_encrypted(url: str, told: str) -> None:
    with pytest.raises(SourceError, match=told):
        in_a_process(partial(examine_at, url=url, addresses=["93.184.215.14"]))


def environment_after(_: BinaryIO) -> dict[str, str]:
    forget_environment()
    return dict(os.environ)


def test_the_process_has_no_credentials_of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the service")
    assert in_a_process(environment_after) == {"HOME": "/nonexistent"}


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    certificate = _self_signed(tmp_path / "server.pem")
    with web_server(certificate=certificate) as server:
        host = urlsplit(server.url).netloc
        connection = DecryptedConnection("self-signed", f"https://{host}", None)
        with pytest.raises(SourceError, match="no connection: ConnectError"):
            in_a_process(partial(examine, connection=connection, settings=SETTINGS))
        assert server.asked == []


def _self_signed(path: Path) -> Path:
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    text = serialization.Encoding.PEM
    plain = key.private_bytes(text, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(plain + certificate.public_bytes(text))
    return path
