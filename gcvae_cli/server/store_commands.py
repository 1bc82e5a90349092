"""The commands `gcvae store verify` and `gcvae store gc`, for the service's stored files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from gcvae_cli.server.commands import DataDir, read_server_settings
from gcvae_cli.server.records import opened_catalog

if TYPE_CHECKING:
    from catalog import Catalog
    from models_store import Store

store = typer.Typer(help="Manage the store.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Grace = Annotated[
    float,
    typer.Option(min=0, help="Newer objects are kept, because they may be in use."),
]


@store.command()
def verify(
    data_dir: DataDir = None, grace_seconds: Grace = 86_400.0, as_json: Json = False
) -> None:
    """Check that the database and the stored objects agree, and that the objects are intact."""
    from worker.upkeep import verify as verify_store

    with _connected(data_dir) as (catalog, objects):
        findings = verify_store(catalog, objects, grace_seconds)
    if as_json:
        print(json.dumps(findings.to_json(), indent=1))
    else:
        for word, places in (("missing", findings.missing), ("damaged", findings.damaged)):
            for place in places:
                print(f"{word}: {place['key']} of {place['record']}")
        for key in findings.orphans:
            print(f"without a record: {key}")
        print(f"{findings.checked} objects are intact")
    if not findings.is_clean:
        raise typer.Exit(1)


@store.command()
def gc(
    data_dir: DataDir = None,
    grace_seconds: Grace = 86_400.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be deleted.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Delete stored objects that no record in the database refers to."""
    from worker.upkeep import collect

    with _connected(data_dir) as (catalog, objects):
        keys = collect(catalog, objects, grace_seconds, dry_run=dry_run)
    if as_json:
        print(json.dumps({"deleted": [] if dry_run else keys, "orphans": keys}, indent=1))
        return
    for key in keys:
        print(key)
    print(f"{len(keys)} objects {'would be' if dry_run else 'were'} deleted")


@contextmanager
def _connected(data_dir: DataDir) -> Iterator[tuple[Catalog, Store]]:
    from models_store import open_store

    with opened_catalog(data_dir) as catalog:
        settings = read_server_settings(home_dir=data_dir)
        keys = settings.store_access_key, settings.store_secret_key
        yield catalog, open_store(settings.store(), *keys)
