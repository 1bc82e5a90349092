"""Reads and writes model files: safetensors with a versioned JSON manifest in the metadata.

No pickle is used, so reading a file cannot run code.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from gcvae.artifact.versions import NO_MODEL
from gcvae.errors import ArtifactError, UnwritableFileError

_METADATA_KEY = "gcvae"
_LENGTH_BYTES = 8
MOST_TENSORS = 20_000
"""Maximum number of tensors in a file: a model has some dozens, and parsing a header with millions
of names takes minutes."""


def pack_tensors(tensors: Mapping[str, Tensor], manifest: Mapping[str, Any]) -> bytes:
    """Returns the bytes of a model file that contains tensors, a manifest and their SHA-256 digest.

    Equal content gives equal bytes.

    Args:
        manifest: JSON-compatible description of the model, without NaN and infinite numbers.
    """
    on_cpu = {name: tensors[name].detach().cpu().contiguous() for name in sorted(tensors)}
    text = json.dumps(manifest, sort_keys=True, allow_nan=False, separators=(",", ":"))
    envelope = json.dumps({"manifest": text, "sha256": _digest(on_cpu, text)}, sort_keys=True)
    # The metadata have one entry, because safetensors writes several in random order.
    return save(on_cpu, metadata={_METADATA_KEY: envelope})


def unpack_tensors(data: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Returns the tensors and the manifest from bytes that `pack_tensors` returned.

    Raises:
        ArtifactError: The bytes are not a model file, or are truncated or altered.
    """
    n_tensors = _header(data).count(b'"data_offsets"')
    if n_tensors > MOST_TENSORS:
        message = f"the file's header names {n_tensors:,} tensors"
        raise ArtifactError(f"{message} (expected: at most {MOST_TENSORS:,})")
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


def packed_bytes(data: bytes) -> Tensor:
    """Returns bytes as a tensor, to store one model file within another."""
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def unpacked_bytes(tensor: Tensor) -> bytes:
    """Returns the bytes of a tensor that `packed_bytes` made."""
    return tensor.numpy().tobytes()


def _read_manifest(text: str) -> dict[str, Any]:
    """Parses the manifest; raises an ArtifactError if it is not a JSON object, or contains NaN, an
    infinite number or an unpaired surrogate."""
    try:
        manifest = json.loads(text, parse_constant=_finite, parse_float=_finite)
        json.dumps(manifest, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"the file's manifest cannot be read: {error}") from error
    if not isinstance(manifest, dict):
        raise ArtifactError("the file's manifest is no JSON object")
    return manifest


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no finite number")
    return number


def write_artifact(path: str | Path, data: bytes) -> None:
    """Writes a model file atomically: to a temporary file in the same folder, which is then
    renamed. An existing file is replaced.

    Raises:
        UnwritableFileError: The file cannot be written; the error names `path`, not the temporary
            file.
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
    """Returns the bytes of a model file.

    Raises:
        ArtifactError: The file does not exist or cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ArtifactError(f"{path}: {error.strerror}") from error


def _header(data: bytes) -> bytes:
    """Returns the JSON header of a safetensors file. The first eight bytes of the file contain the
    header's length; the header follows."""
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    return data[_LENGTH_BYTES : _LENGTH_BYTES + length]


def _envelope(data: bytes) -> dict[str, str]:
    """Returns {"manifest": its JSON text, "sha256": digest of the tensors and this text} from the
    header of a model file."""
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
