"""The commands `gcvae keys create`, `list`, `rotate` and `revoke`, which manage API keys."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcvae_cli.errors import WrongUsageError
from gcvae_cli.server.commands import DataDir
from gcvae_cli.server.records import opened_catalog

if TYPE_CHECKING:
    from catalog import Catalog
    from catalog.records import Key, Scope

keys = typer.Typer(
    help="Manage API keys. Once the first exists, every call requires a key.",
    no_args_is_help=True,
)

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
KeyId = Annotated[str, typer.Argument(help="Id of the key (key_…), as `gcvae keys list` shows it.")]

_LONGEST_NAME = 100


@keys.command()
def create(
    workspace: Annotated[str, typer.Option(help="Workspace that the key gives access to.")],
    name: Annotated[str, typer.Option(help="Name of the key.")] = "",
    scopes: Annotated[
        str, typer.Option(help="Scopes, separated by commas: read, write, admin.")
    ] = "read,write",
    days: Annotated[
        float | None, typer.Option(help="Days until it expires. [default: never]")
    ] = None,
    from_file: Annotated[
        Path | None,
        typer.Option(help="Use the key in this file; repeating the command has no effect."),
    ] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Create a key. It is shown only once and not stored; rotate a lost key."""
    chosen = _scopes(scopes)
    _check_name("--workspace", workspace)
    _check_name("--name", name, may_be_empty=True)
    if days is not None and not 0 < days < 36_500:
        raise WrongUsageError(f"--days is {days:g}; more than 0 and less than 36,500 are right")
    expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
    text = None if from_file is None else _read(from_file)
    with opened_catalog(data_dir, makes_tables=True) as catalog:
        key, written = catalog.keys.create(
            workspace, name, chosen, expires_at=expires_at, text=text
        )
        _note(catalog, "keys create", key)
    _show_new(key, written if from_file is None else None, as_json)


@keys.command("list")
def list_(
    workspace: Annotated[str | None, typer.Option(help="Only keys of this workspace.")] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """List keys with workspace, scopes and last use."""
    with opened_catalog(data_dir) as catalog:
        found = [key for key in catalog.keys.list() if workspace in (None, key.workspace)]
    if as_json:
        print(json.dumps([_document(key) for key in found], indent=1))
        return
    for key in found:
        words = [key.id, key.workspace, key.name or "-", ",".join(key.scopes), _state(key)]
        print("  ".join(words))
    if not found:
        print("there are no keys; the service accepts requests from this machine only")


@keys.command()
def rotate(key_id: KeyId, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Replace a key by a new one; the old key is revoked at once."""
    with opened_catalog(data_dir) as catalog:
        key, written = catalog.keys.rotate(key_id)
        _note(catalog, "keys rotate", key)
    _show_new(key, written, as_json)


@keys.command()
def revoke(key_id: KeyId, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Revoke a key."""
    with opened_catalog(data_dir) as catalog:
        key = catalog.keys.revoke(key_id)
        _note(catalog, "keys revoke", key)
    print(json.dumps(_document(key), indent=1) if as_json else f"{key.id} is revoked")


def _note(catalog: Catalog, action: str, key: Key) -> None:
    from catalog.access.audit import OPERATOR
    from catalog.records import AuditedAction

    catalog.audit.append(AuditedAction(key.workspace, OPERATOR, action, key.id))


def _scopes(text: str) -> list[Scope]:
    from catalog.records import Scope

    try:
        return [Scope(word.strip()) for word in text.split(",")]
    except ValueError:
        right = ", ".join(Scope)
        raise WrongUsageError(f"--scopes is {text!r}; of {right}, with commas between") from None


def _check_name(option: str, name: str, *, may_be_empty: bool = False) -> None:
    is_long = len(name) > _LONGEST_NAME
    if is_long or not (name.isprintable() and (may_be_empty or name.strip())):
        raise WrongUsageError(f"{option} is {name!r}; 1 to {_LONGEST_NAME} letters are right")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsageError(f"--from-file {path}: {error}") from error


def _show_new(key: Key, written: str | None, as_json: bool) -> None:
    """Prints a new key: its string `written`, or its id and workspace if `written` is None because
    the user gave the string in a file. JSON output contains the record of the key, too."""
    if as_json:
        shown = {} if written is None else {"key": written}
        print(json.dumps(shown | _document(key), indent=1))
    elif written is None:
        print(f"{key.id} opens workspace {key.workspace!r}")
    else:
        print(written)


def _document(key: Key) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in asdict(key).items()
    }


def _state(key: Key) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is not None and key.expires_at <= datetime.now(UTC):
        return "expired"
    used = "never used" if key.last_used_at is None else f"used {key.last_used_at:%Y-%m-%d %H:%M}"
    return used if key.expires_at is None else f"{used}, until {key.expires_at:%Y-%m-%d}"
