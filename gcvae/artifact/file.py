"""One safe file per model: safetensors, a versioned JSON manifest in its metadata, no pickle."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from gcvae.artifact.versions import NO_MODEL
from gcvae.errors import ArtifactError, UnwritableFileError

_METADATA_KEY = "gcvae"
_LENGTH_BYTES = 8
MOST_TENSORS = 20_000
"""In a file: a model has some dozens, and a header that names millions takes minutes to read."""


def pack_tensors(tensors: Mapping[str, Tensor], manifest: Mapping[str, Any]) -> bytes:
    """Tensors and a JSON document in one block of bytes, with a digest over both.

    Equal content gives equal bytes.
    """
    on_cpu = {name: tensors[name].detach().cpu().contiguous() for name in sorted(tensors)}
    text = json.dumps(manifest, sort_keys=True, allow_nan=False, separators=(",", ":"))
    envelope = json.dumps({"manifest": text, "sha256": _digest(on_cpu, text)}, sort_keys=True)
    # One entry only: safetensors writes several in random order.
    return save(on_cpu, metadata={_METADATA_KEY: envelope})


def unpack_tensors(data: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """(tensors, manifest) of what `pack_tensors` made.

    Raises: ArtifactError if the bytes are truncated, altered or something else.
    """
    _check_tensors(data)
    try:
        tensors = load(data)
        envelope = _envelope(data)
        text, digest = envelope["manifest"], envelope["sha256"]
        found = _digest(tensors, text)
    except (SafetensorError, KeyError, ValueError, TypeError, RecursionError) as error:
        raise ArtifactError(NO_MODEL) from error
    if found != digest:
        raise ArtifactError(
            "the file was altered: its content does not match its checksum; copy it again from "
            "where it was written"
        )
    return tensors, _read_manifest(text)


def _read_manifest(text: str) -> dict[str, Any]:
    """The manifest's document.

    Raises: ArtifactError if it is no JSON object, or has what JSON has not: an infinite number or
        half a character.
    """
    try:
        manifest = json.loads(text, parse_constant=_finite, parse_float=_finite)
        json.dumps(manifest, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"the file's manifest can not be read: {error}") from error
    if not isinstance(manifest, dict):
        raise ArtifactError("the file's manifest is no JSON object")
    return manifest


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no finite number")
    return number


def write_artifact(path: str | Path, data: bytes) -> None:
    """Writes a model file whole or not at all: a temporary neighbour takes the name at the end.

    Raises: UnwritableFileError that names `path`, not the neighbour.
    """
    path = Path(path)
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        why = error.strerror
        if not path.parent.is_dir():
            why = f"there is no folder {path.parent} (expected: one that exists)"
        raise UnwritableFileError(error.errno, why, str(path)) from error
    finally:
        with suppress(OSError):
            partial.unlink()


def read_artifact(path: str | Path) -> bytes:
    """The bytes of a model file.

    Raises: ArtifactError if there is no such file.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ArtifactError(f"{path}: {error.strerror}") from error


def _header(data: bytes) -> bytes:
    """The file's header, as JSON: the length stands before it."""
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    return data[_LENGTH_BYTES : _LENGTH_BYTES + length]


def _check_tensors(data: bytes) -> None:
    """Lets a file pass whose header has room for the tensors of a model, before it is parsed.

    Raises: ArtifactError if it names more.
    """
    n_tensors = _header(data).count(b'"data_offsets"')
    if n_tensors > MOST_TENSORS:
        message = f"the file's header names {n_tensors:,} tensors"
        raise ArtifactError(f"{message} (expected: at most {MOST_TENSORS:,})")


def _envelope(data: bytes) -> dict[str, str]:
    """Manifest and digest, out of the header."""
    header = json.loads(_header(data))
    envelope: dict[str, str] = json.loads(header["__metadata__"][_METADATA_KEY])
    return envelope


def _digest(tensors: Mapping[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()
