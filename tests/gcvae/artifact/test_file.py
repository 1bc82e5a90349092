"""A model file is whole, unaltered and of this version, or it is an error."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gcvae.artifact.file import (
    MOST_TENSORS,
    pack_tensors,
    read_artifact,
    unpack_tensors,
    write_artifact,
)
from gcvae.errors import ArtifactError, UnwritableFileError
from tests.wordings import refuses

TENSORS = {"b": torch.arange(6.0).view(2, 3), "a": torch.tensor([1, 2], dtype=torch.int64)}
MANIFEST = {"format": "gcvae-model", "version": 2, "x": [0.1, None, "é"]}


def test_what_is_packed_comes_back() -> None:
    tensors, manifest = unpack_tensors(pack_tensors(TENSORS, MANIFEST))
    assert manifest == MANIFEST
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)


def test_equal_content_gives_equal_bytes_in_any_order() -> None:
    reordered = dict(reversed(TENSORS.items()))
    assert pack_tensors(TENSORS, MANIFEST) == pack_tensors(
        reordered, dict(reversed(MANIFEST.items()))
    )


@pytest.mark.parametrize("length", [0, 7, 8, 100, -1])
def test_a_truncated_file_is_an_error(length: int) -> None:
    with refuses(ArtifactError):
        unpack_tensors(pack_tensors(TENSORS, MANIFEST)[:length])


def test_any_altered_byte_is_an_error() -> None:
    data = pack_tensors(TENSORS, MANIFEST)
    for at in range(0, len(data), 7):
        altered = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        with pytest.raises(ArtifactError):
            unpack_tensors(altered)


def test_a_header_of_very_many_tensors_is_refused_before_it_is_read() -> None:
    entry = '{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    names = ",".join(f'"{i}":{entry}' for i in range(MOST_TENSORS + 1))
    header = f"{{{names}}}".encode()
    with refuses(ArtifactError):
        unpack_tensors(len(header).to_bytes(8, "little") + header)


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with refuses(ArtifactError):
        read_artifact(tmp_path / "none.gcvae")


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with refuses(UnwritableFileError):
        write_artifact(tmp_path / "taken", b"data")
    with refuses(UnwritableFileError):
        write_artifact(tmp_path / "none" / "x.gcvae", b"data")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]
