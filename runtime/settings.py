"""Base classes of settings, which are immutable and read from environment variables or files."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlsplit, urlunsplit

from pydantic import Field, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from runtime.errors import MissingExtraError

PREFIX = "GCVAE_"
USUAL = "usual"
"""Annotation of settings that most users need; the other settings are for experts."""


class Settings(BaseSettings):
    """Base class of settings; a field `x` is read from the environment variable `GCVAE_X`.

    If a variable has the suffix `_FILE`, it names a file that contains the value.

    Raises:
        pydantic.ValidationError: A value is missing or out of range; the error names it.
        pydantic_settings.SettingsError: A file cannot be read, or both the variable and its `_FILE`
            are set.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Returns the sources of values; an earlier source takes precedence over later ones."""
        return init_settings, env_settings, _NamedFiles(settings_cls)


class ServerSettings(Settings):
    """Passwords of database and message broker, to be set apart from their URLs.

    Attributes:
        database_password: Password to insert into `database_url`; None leaves the URL unchanged.
        broker_password: Password to insert into `broker_url`; None leaves the URL unchanged.
    """

    database_password: Annotated[str | None, USUAL] = Field(default=None, repr=False)
    broker_password: Annotated[str | None, USUAL] = Field(default=None, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _put_in_passwords(cls, given: dict[str, Any]) -> dict[str, Any]:
        filled = dict(given)
        for server in ("database", "broker"):
            password = given.get(f"{server}_password")
            if password is not None:
                url = str(given.get(f"{server}_url") or "")
                filled[f"{server}_url"] = with_password(url, password)
        return filled


class RuntimeSettings(Settings):
    """Settings of a process's logs and traces.

    Attributes:
        log_level: Lowest level of logged events.
        log_format: `json`, `text`, or `auto`: text if standard error is a terminal, otherwise JSON.
        traces_endpoint: URL of the trace collector (OTLP over HTTP); None disables traces.
        traces_share: Share of requests that are traced, 0 to 1.
    """

    log_level: Annotated[Literal["debug", "info", "warning", "error"], USUAL] = "info"
    log_format: Annotated[Literal["auto", "json", "text"], USUAL] = "auto"
    traces_endpoint: Annotated[str | None, USUAL] = Field(default=None, pattern=r"^https?://")
    traces_share: float = Field(default=1.0, ge=0, le=1)


class _NamedFiles(PydanticBaseSettingsSource):
    """Source of settings: the files named by environment variables `GCVAE_…_FILE`."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        name = variable(field_name)
        named = os.environ.get(f"{name}_FILE")
        if named is None:
            return None, field_name, False
        if name in os.environ:
            raise SettingsError(f"{name} and {name}_FILE are both set; keep one of them")
        try:
            text = Path(named).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{name}_FILE: {named} cannot be read ({error})") from error
        return text.removesuffix("\n").removesuffix("\r"), field_name, False

    def __call__(self) -> dict[str, Any]:
        fields = self.settings_cls.model_fields
        found = {name: self.get_field_value(field, name)[0] for name, field in fields.items()}
        return {name: value for name, value in found.items() if value is not None}


def variable(field: str) -> str:
    """Returns the name of the environment variable from which a settings field is read.

    >>> variable("log_level")
    'GCVAE_LOG_LEVEL'
    """
    return f"{PREFIX}{field}".upper()


def require_extra(setting: str, extra: str, name: str, *packages: str) -> None:
    """Checks that the optional packages for a setting are installed.

    Args:
        setting: Field name of the setting that needs the packages.
        extra: pip extra that installs the packages.
        name: Name of the packages in the error message.
        *packages: Names of the modules to look for.

    Raises:
        MissingExtraError: One of the modules is not installed.
    """
    try:
        is_installed = all(importlib.util.find_spec(package) for package in packages)
    except ModuleNotFoundError:  # the parent package is missing
        is_installed = False
    if not is_installed:
        raise MissingExtraError(variable(setting), name, extra)


def temporary_folder() -> Path:
    """Returns the system's temporary folder: `TMPDIR`, or /tmp.

    If that folder is full, `tempfile` silently uses another one, in which files of killed processes
    would not be found.
    """
    return Path(os.environ.get("TMPDIR") or "/tmp")  # the default of POSIX


def forget_environment() -> None:
    """Removes all environment variables of this process, then sets HOME to a folder that does not
    exist.

    Libraries thus find no credentials in environment variables or in files of the home folder.
    """
    os.environ.clear()
    os.environ["HOME"] = "/nonexistent"


def environment_of(values: Mapping[str, object]) -> dict[str, str]:
    """Returns environment variables with which a child process reads the same settings.

    All variables of this process are included. Each setting `x` in `values` is added as `GCVAE_X`,
    unless this process has the variable `GCVAE_X` or `GCVAE_X_FILE`. The latter names a file that
    contains the value, so secrets in files are not copied into variables.

    Args:
        values: Value of each setting by field name; settings with the value None are omitted.
    """
    ours = {}
    for field, value in values.items():
        name = variable(field)
        if value is not None and name not in os.environ and f"{name}_FILE" not in os.environ:
            ours[name] = ",".join(value) if isinstance(value, tuple) else str(value)
    return os.environ | ours


def with_password(url: str, password: str | None) -> str:
    """Returns a server's URL with the password inserted; None leaves the URL unchanged.

    >>> with_password("redis://queue:6379/0", "a/b")
    'redis://:a%2Fb@queue:6379/0'

    Raises:
        ValueError: A password is given, and the URL contains no host.
    """
    if password is None:
        return url
    parts = urlsplit(url)
    if not parts.hostname:
        raise ValueError(f"a password is set, but {url!r} is not the URL of a server")
    user = parts.username or ""
    address = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{address}"))
