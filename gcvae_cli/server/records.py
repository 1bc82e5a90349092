"""Opens the database of a service for commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from gcvae_cli.errors import WrongUsageError
from gcvae_cli.server.commands import DataDir, read_server_settings, server_errors

if TYPE_CHECKING:
    from catalog import Catalog


@contextmanager
def opened_catalog(data_dir: DataDir, *, makes_tables: bool = False) -> Iterator[Catalog]:
    """Context manager that yields the catalog, which is the interface to the service's database.

    Args:
        data_dir: Data folder of the service; None for the folder in the settings.
        makes_tables: Whether to create a database that does not exist yet.

    Raises:
        WrongUsageError: The database does not exist, and `makes_tables` is False.
        ServerError: The tables of the database have another version, or a call of the catalog
            failed.
    """
    from catalog import Catalog, upgrade
    from catalog.database.migrate import check

    settings = read_server_settings(home_dir=data_dir)
    with server_errors():
        if makes_tables and not settings.has_database():
            upgrade(settings.database())
        if not settings.has_database():
            raise WrongUsageError(f"{settings.home_dir} contains no data of a service (--data-dir)")
        check(settings.database())
        with closing(Catalog(settings.database())) as catalog:
            yield catalog
