"""Settings of the object store, read from environment variables."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from runtime.settings import USUAL, Settings


class StoreSettings(Settings):
    """Address and credentials of the object store.

    Attributes:
        store_url: `file:///FOLDER` or `s3://BUCKET/PREFIX`.
        store_access_key, store_secret_key: Credentials of S3; None to use the standard `AWS_…`
            variables or the machine's role.
    """

    store_url: Annotated[str, USUAL]
    store_access_key: Annotated[str | None, USUAL] = Field(default=None, repr=False)
    store_secret_key: Annotated[str | None, USUAL] = Field(default=None, repr=False)
