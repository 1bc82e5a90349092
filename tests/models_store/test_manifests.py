"""Manifests: a table in parts is read as one."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path

import pytest

from models_store import Store, open_store
from models_store.errors import CorruptedError, MissingObjectError, PartsLostError
from models_store.manifests import Manifest

_PIECES = (b"a,b\n1,2\n", b"3,4\n" * 700_000, b"", b"5,6\n")
_WHOLE = b"".join(_PIECES)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"file://{tmp_path}/store")


@pytest.fixture
def manifest(store: Store) -> Manifest:
    parts = [store.publish(f"results/r/{n}", piece) for n, piece in enumerate(_PIECES)]
    return Manifest.of_parts(store, parts)


def test_the_parts_are_read_as_one_table_with_its_own_checksum(
    store: Store, manifest: Manifest
) -> None:
    assert (manifest.size_bytes, manifest.sha256) == (
        len(_WHOLE), hashlib.sha256(_WHOLE).hexdigest(),
    )  # fmt: skip
    assert b"".join(manifest.stream(store)) == _WHOLE


def test_a_manifest_reads_back(store: Store, manifest: Manifest) -> None:
    published = store.publish("results/r/manifest.json", manifest.to_bytes())
    assert Manifest.read(store, published.key, published.sha256) == manifest
    with pytest.raises(CorruptedError):
        Manifest.read(store, published.key, "0" * 64)


@pytest.mark.parametrize("ends", [*pairwise((0, 3, 8, 9, 2_800_007, 2_800_011, 2_800_012))])
def test_a_range_is_cut_from_the_parts_it_lies_in(
    store: Store, manifest: Manifest, ends: tuple[int, int]
) -> None:
    assert b"".join(manifest.stream_range(store, *ends)) == _WHOLE[slice(*ends)]


def test_a_range_may_reach_over_all_parts(store: Store, manifest: Manifest) -> None:
    assert b"".join(manifest.stream_range(store, 7, len(_WHOLE) - 1)) == _WHOLE[7:-1]


def test_lost_and_damaged_parts_are_named_all_at_once(store: Store, tmp_path: Path) -> None:
    parts = [store.publish(f"results/r/{n}", piece) for n, piece in enumerate(_PIECES)]
    store.delete(parts[0].key)
    (tmp_path / "store" / parts[3].key).write_bytes(b"6,5\n")
    with pytest.raises(PartsLostError, match="parts 0, 3 are lost") as found:
        Manifest.of_parts(store, parts)
    assert found.value.numbers == (0, 3)


def test_what_is_damaged_later_breaks_the_stream(
    store: Store, manifest: Manifest, tmp_path: Path
) -> None:
    (tmp_path / "store" / manifest.parts[1].key).write_bytes(_PIECES[1][:-1] + b"x")
    with pytest.raises(CorruptedError):
        b"".join(manifest.stream(store))
    store.delete(manifest.parts[0].key)
    with pytest.raises(MissingObjectError):
        manifest.stream(store)
