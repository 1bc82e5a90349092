"""Destinations of connections: parses connection URLs and checks that they are allowed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from service.errors import OutsideError
from service.outside import AllowedHosts, port_of
from service.settings import ServiceSettings, variable

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")
_DATABASE_NAME = re.compile(r"[^=:/\\\x00]*")
_REGION = re.compile(r"[a-z0-9-]{1,40}")


@dataclass(frozen=True)
class DecryptedConnection:
    """A connection with its decrypted password, for the process that uses it."""

    name: str
    url: str
    password: str | None = field(repr=False)


@dataclass(frozen=True)
class Destination:
    """Destination of a connection.

    Attributes:
        host: The only host that may be reached; None for a local file.
        port: Port of the host; 0 for a local file.
        scheme: Protocol: https, http (not encrypted), postgresql, mysql or sqlite.
    """

    host: str | None
    port: int
    scheme: str


@dataclass(frozen=True)
class DatabaseDestination(Destination):
    """A database server, or an SQLite file in the folder of connections.

    Attributes:
        url: SQLAlchemy URL with the driver, without a password.
    """

    url: sa.URL


@dataclass(frozen=True)
class WebDestination(Destination):
    """A folder of a web server.

    Attributes:
        base: URL without user and final slash.
        user: User name for basic authentication; None if the password is a bearer token.
    """

    base: str
    user: str | None

    def url_of(self, key: str) -> str:
        """Returns the URL of the file with path `key` in the folder."""
        return f"{self.base}/{quote(key)}"


@dataclass(frozen=True)
class BucketDestination(Destination):
    """A folder of a bucket in an S3 store.

    Attributes:
        endpoint: URL of the store.
        prefix: Folder in the bucket; empty for none.
        access_key: Id of the access key; None for a public bucket.
    """

    endpoint: str
    bucket: str
    prefix: str
    region: str
    access_key: str | None

    def key_of(self, key: str) -> str:
        """Returns a file's object key in the bucket. `key` is the file's path below the folder."""
        return f"{self.prefix}/{key}" if self.prefix else key


def parse_destination(
    url: str, allowed_hosts: AllowedHosts, settings: ServiceSettings
) -> Destination:
    """Parses and checks a connection's URL, without a DNS lookup. Returns the destination.

    Raises:
        OutsideError: The URL is invalid, or its host or file is not allowed.
    """
    scheme = url.partition("://")[0].lower()
    if any(character <= " " for character in url):
        raise OutsideError("the URL contains a space or control character", "%20 for a space")
    form = _FORMS.get(scheme)
    if form is None:
        listed = ", ".join(f"{known}://" for known in _FORMS)
        raise OutsideError(f"connections do not support {scheme[:40]!r}", f"one of: {listed}")
    return form(url, allowed_hosts, settings)


def _server(url: str, allowed_hosts: AllowedHosts, settings: ServiceSettings) -> Destination:
    parsed = _parsed(url)
    backend, driver, port, parameters = _SERVERS[parsed.drivername.lower()]
    if not parsed.host:
        raise OutsideError("the URL names no host", f"{backend}://USER@HOST/DATABASE")
    if not _DATABASE_NAME.fullmatch(parsed.database or ""):
        raise OutsideError("the name of the database is invalid", "a name without = : / and \\")
    for name, value in parsed.query.items():
        allowed = parameters.get(name)
        if allowed is None:
            expected = f"no other than: {', '.join(parameters) or 'none'}"
            raise OutsideError(f"the URL has the parameter {name!r}", expected)
        if value not in allowed:
            raise OutsideError(f"{name} is {value!r}", f"one of: {', '.join(allowed)}")
    allowed_hosts.require_host(parsed.host)
    complete = parsed.set(drivername=driver, port=parsed.port or port)
    return DatabaseDestination(parsed.host, parsed.port or port, backend, complete)


def _file(url: str, allowed_hosts: AllowedHosts, settings: ServiceSettings) -> Destination:
    folder = settings.connection_folder
    if folder is None:
        expected = f"a folder for them in {variable('connection_folder')}"
        raise OutsideError("local files are not allowed", expected)
    parsed = _parsed(url)
    form = "sqlite:///FILE, relative to the folder of connections"
    if parsed.host or parsed.query or not parsed.database:
        raise OutsideError("this is not the URL of an SQLite file", form)
    path = (folder / parsed.database).resolve()
    if not path.is_relative_to(folder.resolve()) or path == folder.resolve():
        raise OutsideError("the file is not in the folder of connections", form)
    return DatabaseDestination(None, 0, "sqlite", sa.URL.create("sqlite", database=str(path)))


def _web(url: str, allowed_hosts: AllowedHosts, settings: ServiceSettings) -> Destination:
    user, plain = _without_user(url)
    parts = allowed_hosts.parse(plain)
    if parts.query:
        raise OutsideError("the URL has a query (?…)", "a URL without one")
    host = str(parts.hostname)
    return WebDestination(host, port_of(parts), parts.scheme, plain.rstrip("/"), user)


def _bucket(url: str, allowed_hosts: AllowedHosts, settings: ServiceSettings) -> Destination:
    user, plain = _without_user(url)
    parts = urlsplit(plain)
    if not _BUCKET.fullmatch(parts.netloc) or parts.fragment:
        raise OutsideError("this is not the URL of a bucket", "s3://ACCESS_KEY@BUCKET/PREFIX")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if not set(options) <= {"region", "endpoint"}:
        raise OutsideError("the URL has an unknown parameter", "region and endpoint at most")
    region = options.get("region", "us-east-1")
    if not _REGION.fullmatch(region):
        raise OutsideError("region is invalid", "a region such as eu-central-1")
    host = f"s3.{region}.amazonaws.com"
    store = allowed_hosts.parse(options.get("endpoint", f"https://{host}"))
    if store.path.strip("/") or store.query:
        raise OutsideError("the endpoint has a path or query", "https://{host}")
    prefix = unquote(parts.path).strip("/")
    return BucketDestination(
        str(store.hostname), port_of(store), store.scheme, f"{store.scheme}://{store.netloc}",
        parts.netloc, prefix, region, user,
    )  # fmt: skip


def _parsed(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError):
        raise OutsideError("this is not the URL of a database", _DATABASE_FORM) from None
    if parsed.password is not None or "@" in (parsed.host or ""):
        raise _with_password()
    texts = (parsed.username, parsed.host, parsed.database)
    if not all((text or "").isprintable() for text in texts):
        # After a null character, the driver of PostgreSQL would see neither address nor port.
        raise OutsideError("the URL contains a control character", _DATABASE_FORM)
    return parsed


def _without_user(url: str) -> tuple[str | None, str]:
    """Returns (user name in a URL or None, URL without the user name). Raises OutsideError if the
    URL contains a password."""
    scheme, _, rest = url.partition("://")
    host = re.split(r"[/?#\\]", rest, maxsplit=1)[0]
    user, at, _ = host.rpartition("@")
    if ":" in user or "@" in user:
        raise _with_password()
    return (unquote(user) if at else None), f"{scheme}://{rest[len(user) + len(at) :]}"


def _with_password() -> OutsideError:
    return OutsideError("the URL contains a password", "the password in the member password")


_DATABASE_FORM = "postgresql://USER@HOST/DATABASE"
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_POSTGRES = (
    "postgresql", "postgresql+psycopg", 5432, {"sslmode": _SSL_MODES, "sslrootcert": ("system",)},
)  # fmt: skip
_MYSQL: tuple[str, str, int, dict[str, tuple[str, ...]]]
_MYSQL = ("mysql", "mysql+pymysql", 3306, {})
_SERVERS = {
    "postgresql": _POSTGRES, "postgres": _POSTGRES, "postgresql+psycopg": _POSTGRES,
    "mysql": _MYSQL, "mariadb": _MYSQL, "mysql+pymysql": _MYSQL,
}  # fmt: skip
"""(protocol, SQLAlchemy driver, default port, allowed values by parameter) by the URL's scheme."""
_FORMS: dict[str, Callable[[str, AllowedHosts, ServiceSettings], Destination]] = {
    **dict.fromkeys(_SERVERS, _server),
    "sqlite": _file,
    "s3": _bucket,
    "https": _web,
    "http": _web,
}
