"""The commands `gcvae audit export` and `gcvae audit verify`, for the service's audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from gcvae_cli.server.commands import DataDir, server_errors
from gcvae_cli.server.records import opened_catalog

if TYPE_CHECKING:
    from catalog.access.audit import Audit

audit = typer.Typer(help="Read the audit log.", no_args_is_help=True)


@audit.command()
def export(data_dir: DataDir = None) -> None:
    """Print the audit log of all workspaces as JSON lines, oldest first."""
    with _gateway(data_dir) as gateway:
        for entry in gateway.entries():
            print(json.dumps(asdict(entry), ensure_ascii=False))


@audit.command()
def verify(data_dir: DataDir = None) -> None:
    """Verify that no line of the audit log was changed; prints their number and last digest."""
    with _gateway(data_dir) as gateway:
        broken = gateway.first_break()
        last = gateway.last()
    if broken is not None:
        print(f"line {broken.number} ({broken.id}, {broken.at}) was changed")
        raise typer.Exit(1)
    n_lines, digest = (0, "-") if last is None else (last.number, last.digest)
    print(f"{n_lines} lines are unchanged; the last digest is {digest}")


@contextmanager
def _gateway(data_dir: DataDir) -> Iterator[Audit]:
    with server_errors(), opened_catalog(data_dir) as catalog:
        yield catalog.audit
