"""Settings: frozen objects read at a process's edge, from the environment or from files."""

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
"""Marks a setting that people set; the others are for experts."""


class Settings(BaseSettings):
    """Each field is `GCVAE_` and its name in capitals; with `_FILE` behind, the file that holds it.

    Raises:
        pydantic.ValidationError: a value is missing or out of its range; it is named.
        pydantic_settings.SettingsError: a file can not be read, or a value is given twice.
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
        """What the program says wins over the environment; files stand beside it."""
        return init_settings, env_settings, _NamedFiles(settings_cls)


class ServerSettings(Settings):
    """Passwords of the servers, apart from their addresses: a URL is no place for a secret.

    Attributes:
        database_password, broker_password: put into the URL of that name.
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
        log_level: the least important event that is logged.
        log_format: text, JSON, or by whether standard error is a terminal.
        traces_endpoint: where traces are sent (OTLP over HTTP); None sends none.
        traces_share: share of the requests that are traced, 0 to 1.
    """

    log_level: Annotated[Literal["debug", "info", "warning", "error"], USUAL] = "info"
    log_format: Annotated[Literal["auto", "json", "text"], USUAL] = "auto"
    traces_endpoint: Annotated[str | None, USUAL] = Field(default=None, pattern=r"^https?://")
    traces_share: float = Field(default=1.0, ge=0, le=1)


class _NamedFiles(PydanticBaseSettingsSource):
    """`GCVAE_…_FILE`: the value is what the named file holds, without its last line break."""

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
    """The environment variable of a field.

    >>> variable("log_level")
    'GCVAE_LOG_LEVEL'
    """
    return f"{PREFIX}{field}".upper()


def temporary_folder() -> Path:
    """The system's, also while it is full: `tempfile` takes another then, without a word, in which
    nobody looks for what a killed process left.
    """
    return Path(os.environ.get("TMPDIR") or "/tmp")  # what POSIX says


def environment_of(values: Mapping[str, object]) -> dict[str, str]:
    """The environment of a child process that is to read these values, by name of the field.

    What the environment or a file gives already, the child reads from there too: no secret is
    copied.
    """
    ours = {
        variable(name): _text(value)
        for name, value in values.items()
        if value is not None and not _is_given(variable(name))
    }
    return os.environ | ours


def with_password(url: str, password: str | None) -> str:
    """The URL of a server with the password filled in, where one is given beside it.

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
