"""Settings: immutable objects, read from the environment or from files."""

from __future__ import annotations

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

PREFIX = "GCVAE_"
USUAL = "usual"
"""Annotation of settings for all users; the others are for experts."""


class Settings(BaseSettings):
    """Base class: each field is read from `GCVAE_` plus its name in capitals.

    With the suffix `_FILE`, the variable names a file that has the value.

    Raises:
        pydantic.ValidationError: A value is missing or out of range; the error names it.
        pydantic_settings.SettingsError: A file can not be read, or a value is given twice.
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
        """Arguments of the program take precedence over the environment, which is used together
        with files."""
        return init_settings, env_settings, _NamedFiles(settings_cls)


class ServerSettings(Settings):
    """Passwords of servers, which are not part of their URLs.

    Attributes:
        database_password, broker_password: Inserted into the URL of that name.
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
    """Logs and traces of a process.

    Attributes:
        log_level: Lowest level of logged events.
        log_format: Text, JSON, or depending on whether standard error is a terminal.
        traces_endpoint: Address of the trace collector (OTLP over HTTP); None for none.
        traces_share: Share of requests that are traced, 0 to 1.
    """

    log_level: Annotated[Literal["debug", "info", "warning", "error"], USUAL] = "info"
    log_format: Annotated[Literal["auto", "json", "text"], USUAL] = "auto"
    traces_endpoint: Annotated[str | None, USUAL] = Field(default=None, pattern=r"^https?://")
    traces_share: float = Field(default=1.0, ge=0, le=1)


class _NamedFiles(PydanticBaseSettingsSource):
    """`GCVAE_…_FILE`: the value is the content of the named file without its final line break."""

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
            raise SettingsError(f"{name}_FILE: {named} can not be read ({error})") from error
        return text.removesuffix("\n").removesuffix("\r"), field_name, False

    def __call__(self) -> dict[str, Any]:
        fields = self.settings_cls.model_fields
        found = {name: self.get_field_value(field, name)[0] for name, field in fields.items()}
        return {name: value for name, value in found.items() if value is not None}


def variable(field: str) -> str:
    """Returns the environment variable of a field.

    >>> variable("log_level")
    'GCVAE_LOG_LEVEL'
    """
    return f"{PREFIX}{field}".upper()


def temporary_folder() -> Path:
    """Returns the system's temporary folder, even if it is full.

    `tempfile` silently uses another folder then, in which files of killed processes would not be
    found.
    """
    return Path(os.environ.get("TMPDIR") or "/tmp")  # the default of POSIX


def environment_of(values: Mapping[str, object]) -> dict[str, str]:
    """Returns the environment variables for a child process with these values, by field name.

    Values that come from the environment or a file are not included, because the child reads them
    itself; secrets are thus not copied.
    """
    ours = {
        variable(name): _text(value)
        for name, value in values.items()
        if value is not None and not _is_given(variable(name))
    }
    return os.environ | ours


def with_password(url: str, password: str | None) -> str:
    """Returns the URL of a server with the password inserted, if one is given.

    >>> with_password("redis://queue:6379/0", "a/b")
    'redis://:a%2Fb@queue:6379/0'
    """
    if password is None:
        return url
    parts = urlsplit(url)
    if not parts.hostname:
        raise ValueError(f"a password is set, but {url!r} is not the URL of a server")
    user = parts.username or ""
    address = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{address}"))


def _is_given(name: str) -> bool:
    return name in os.environ or f"{name}_FILE" in os.environ


def _text(value: object) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)
