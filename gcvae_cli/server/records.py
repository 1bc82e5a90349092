"""Access to the records for commands."""

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
    """Yields the catalog of the settings.

    Raises:
        WrongUsageError: There is none, and `makes_tables` is False.
        CatalogError: Its tables have another version.
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
