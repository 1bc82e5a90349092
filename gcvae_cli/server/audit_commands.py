"""The commands `gcvae audit export` and `gcvae audit verify`, for the service's audit log."""

from __future__ import annotations

import json
from dataclasses import asdict

import typer

from gcvae_cli.server.commands import DataDir
from gcvae_cli.server.records import opened_catalog

audit = typer.Typer(help="Read the audit log.", no_args_is_help=True)


@audit.command()
def export(data_dir: DataDir = None) -> None:
    """Print the audit log of all workspaces as JSON lines, oldest first."""
    with opened_catalog(data_dir) as catalog:
        for entry in catalog.audit.entries():
            print(json.dumps(asdict(entry), ensure_ascii=False))


@audit.command()
def verify(data_dir: DataDir = None) -> None:
    """Verify that no line of the audit log was changed; prints their number and last digest."""
    with opened_catalog(data_dir) as catalog:
        broken = catalog.audit.first_break()
        last = catalog.audit.last()
    if broken is not None:
        print(f"line {broken.number} ({broken.id}, {broken.at}) was changed")
        raise typer.Exit(1)
    n_lines, digest = (0, "-") if last is None else (last.number, last.digest)
    print(f"{n_lines} lines are unchanged; the last digest is {digest}")
