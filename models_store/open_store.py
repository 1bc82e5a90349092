"""Opens the object store at a URL."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from obstore.store import S3Store

from models_store.errors import StoreUrlError
from models_store.settings import StoreSettings
from models_store.store import Store, folder_store

if TYPE_CHECKING:
    from obstore.store import S3Config

_TIMEOUT = timedelta(seconds=60)
_RETRY_TIMEOUT = timedelta(seconds=30)


def open_store(url: str, access_key: str | None = None, secret_key: str | None = None) -> Store:
    """Opens the object store at `file:///FOLDER` or `s3://BUCKET/PREFIX`.

    For S3, endpoint, region and credentials come from the standard `AWS_…` variables
    (`AWS_ENDPOINT_URL` for other providers) or the machine's role.

    Args:
        url: URL of the store.
        access_key, secret_key: Credentials of S3; None to use the variables or the role.

    Raises:
        StoreUrlError: The URL has another scheme, or only one of the two credentials is given.
    """
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path:
        return folder_store(Path(unquote(parts.path)))
    if parts.scheme == "s3" and parts.netloc:
        if (access_key is None) != (secret_key is None):
            raise StoreUrlError("only one of the two keys of the store is set; set both or neither")
        return Store(_s3(parts.netloc, parts.path.strip("/"), access_key, secret_key))
    raise StoreUrlError(f"{url!r} is not a store; it must be file:///FOLDER or s3://BUCKET/PREFIX")


def open_store_of(settings: StoreSettings) -> Store:
    """Opens the object store at the URL in the settings, with the credentials in the settings.

    Raises:
        StoreUrlError: The URL in the settings is invalid, or only one of two credentials is given.
    """
    keys = settings.store_access_key, settings.store_secret_key
    return open_store(settings.store_url, *keys)


def _s3(bucket: str, prefix: str, access_key: str | None, secret_key: str | None) -> S3Store:
    config: S3Config = {}
    if access_key is not None and secret_key is not None:
        config = {"access_key_id": access_key, "secret_access_key": secret_key}
    return S3Store(
        bucket,
        prefix=prefix or None,
        config=config,
        # Self-hosted stores on a private network often use HTTP without TLS.
        client_options={"allow_http": True, "timeout": _TIMEOUT},
        retry_config={"max_retries": 5, "retry_timeout": _RETRY_TIMEOUT},
        copy_if_not_exists="multipart",
        virtual_hosted_style_request=False,
    )
