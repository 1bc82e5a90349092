"""Open a store by its URL."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

from obstore.store import S3Store

from models_store.errors import StoreUrlError
from models_store.store import Store, folder_store

_TIMEOUT = timedelta(seconds=60)
_RETRY_TIMEOUT = timedelta(seconds=30)


def open_store(url: str) -> Store:
    """The store at `file:///FOLDER` or `s3://BUCKET/PREFIX`.

    S3 takes its endpoint, region and credentials where every S3 client looks: the standard
    `AWS_…` variables (`AWS_ENDPOINT_URL` for a store that is not Amazon's) or the machine's role.

    Raises:
        StoreUrlError: another kind of URL.
    """
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path:
        return folder_store(Path(unquote(parts.path)))
    if parts.scheme == "s3" and parts.netloc:
        return Store(_s3(parts.netloc, parts.path.strip("/")))
    raise StoreUrlError(f"{url!r} is no store; it must be file:///FOLDER or s3://BUCKET/PREFIX")


def _s3(bucket: str, prefix: str) -> S3Store:
    return S3Store(
        bucket,
        prefix=prefix or None,
        # Plain http is what self-hosted stores on a private network speak.
        client_options={"allow_http": True, "timeout": _TIMEOUT},
        retry_config={"max_retries": 5, "retry_timeout": _RETRY_TIMEOUT},
        copy_if_not_exists="multipart",
        virtual_hosted_style_request=False,
    )
