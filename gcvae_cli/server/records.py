"""Opens the database of a service for commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gcvae_cli.errors import WrongUsageError
from gcvae_cli.server.commands import DataDir, read_server_settings

if TYPE_CHECKING:
    from catalog import Catalog


@contextmanager
def opened_catalog(data_dir: DataDir, *, makes_tables: bool = False) -> Iterator[Catalog]:
    """Context manager that yields the catalog, which is the interface to the service's database.

    Args:
        data_dir: Data folder of the service; None for that of the settings.
        makes_tables: Whether to create a database that does not exist yet.

    Raises:
        WrongUsageError: The database does not exist, and `makes_tables` is False.
        CatalogError: The tables of the database have another version.
    """
    from catalog import Catalog, upgrade
    from catalog.database.migrate import check

    settings = read_server_settings(home_dir=data_dir)
    if not settings.has_database():
        if not makes_tables:
            raise WrongUsageError(f"{settings.home_dir} contains no data of a service (--data-dir)")
        upgrade(settings.database())
    check(settings.database())
    catalog = Catalog(settings.database())
    try:
        yield catalog
    finally:
        catalog.close()
