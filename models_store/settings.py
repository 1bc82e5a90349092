"""Settings of the store, from the environment."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from runtime.settings import USUAL, Settings


class StoreSettings(Settings):
    """Address and credentials of the store.

    Attributes:
        store_access_key, store_secret_key: Credentials of S3. Default: its standard variables or
            the machine's role.
    """

    store_url: Annotated[str, USUAL]
    store_access_key: Annotated[str | None, USUAL] = Field(default=None, repr=False)
    store_secret_key: Annotated[str | None, USUAL] = Field(default=None, repr=False)
