"""The version of model files; this library reads only the version that it writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gcvae.errors import ModelVersionError

FORMAT = "gcvae-model"
DATABASE_FORMAT = "gcvae database"
VERSION = 12
NO_MODEL = (
    "not a gcvae file, or a truncated one; a model is what `gcvae train`, `save` or a service's "
    "download wrote, and all of it"
)
_OLDER = "; an older gcvae wrote it: train the model again with this one"


def check_version(manifest: Mapping[str, Any]) -> None:
    """Checks that the manifest of a model file has this library's format and version.

    Raises:
        ModelVersionError: The format or version differs; the error says what to do.
    """
    format_, version = manifest.get("format"), manifest.get("version")
    if format_ == DATABASE_FORMAT:
        raise ModelVersionError("the file holds a model of a database: DatabaseSynthesizer.load")
    if (format_, version) == (FORMAT, VERSION):
        return
    remedy = ""
    if format_ == FORMAT and isinstance(version, int):
        is_newer = version > VERSION
        remedy = "; a newer gcvae wrote it: upgrade this one" if is_newer else _OLDER
    raise ModelVersionError(
        f"the file is {format_} version {version}; this library reads {FORMAT} version {VERSION}"
        f"{remedy}"
    )
