"""The records that commands look after."""

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
    """The records that the settings name.

    Raises:
        WrongUsageError: there are none, and none are to be made.
        CatalogError: they are of another version.
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
