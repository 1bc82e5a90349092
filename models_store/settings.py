"""The store's settings, from the environment."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from runtime.settings import USUAL, Settings


class StoreSettings(Settings):
    """Where the bytes are.

    Attributes:
        store_access_key, store_secret_key: of S3; where they are not given, its standard variables
            or the machine's role are asked.
    """

    store_url: Annotated[str, USUAL]
    store_access_key: Annotated[str | None, USUAL] = Field(default=None, repr=False)
    store_secret_key: Annotated[str | None, USUAL] = Field(default=None, repr=False)
