"""Manifests: a table in shards is read as one."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from pathlib import Path

import pytest

from models_store import Store, open_store
from models_store.errors import CorruptedError, MissingObjectError, ShardsLostError
from models_store.manifests import Manifest
from tests.wordings import refuses

_PIECES = (b"a,b\n1,2\n", b"3,4\n" * 700_000, b"", b"5,6\n")
_WHOLE = b"".join(_PIECES)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"file://{tmp_path}/store")


@pytest.fixture
def manifest(store: Store) -> Manifest:
    shards = [store.publish(f"results/r/{n}", piece) for n, piece in enumerate(_PIECES)]
    return Manifest.of_shards(store, shards)


def test_the_shards_are_read_as_one_table_with_its_own_checksum(
    store: Store, manifest: Manifest
) -> None:
    assert (manifest.size_bytes, manifest.sha256) == (
        len(_WHOLE), hashlib.sha256(_WHOLE).hexdigest(),
    )  # fmt: skip
    assert b"".join(manifest.stream(store)) == _WHOLE


def test_a_manifest_is_the_document_that_older_services_wrote(manifest: Manifest) -> None:
    document = json.loads(manifest.to_bytes())
    assert list(document) == ["format", "version", "parts", "size_bytes", "sha256"]
    assert (document["format"], document["version"]) == ("gcvae-parts", 1)
    assert {name for part in document["parts"] for name in part} == {"key", "sha256", "size_bytes"}


def test_a_manifest_reads_back(store: Store, manifest: Manifest) -> None:
    published = store.publish("results/r/manifest.json", manifest.to_bytes())
    assert Manifest.read(store, published.key, published.sha256) == manifest
    with pytest.raises(CorruptedError):
        Manifest.read(store, published.key, "0" * 64)


@pytest.mark.parametrize("ends", [*pairwise((0, 3, 8, 9, 2_800_007, 2_800_011, 2_800_012))])
def test_a_range_is_cut_from_the_shards_it_lies_in(
    store: Store, manifest: Manifest, ends: tuple[int, int]
) -> None:
    assert b"".join(manifest.stream_range(store, *ends)) == _WHOLE[slice(*ends)]


def test_a_range_may_reach_over_all_shards(store: Store, manifest: Manifest) -> None:
    assert b"".join(manifest.stream_range(store, 7, len(_WHOLE) - 1)) == _WHOLE[7:-1]


def test_lost_and_damaged_shards_are_named_all_at_once(store: Store, tmp_path: Path) -> None:
    shards = [store.publish(f"results/r/{n}", piece) for n, piece in enumerate(_PIECES)]
    store.delete(shards[0].key)
    (tmp_path / "store" / shards[3].key).write_bytes(b"6,5\n")
    with refuses(ShardsLostError) as found:
        Manifest.of_shards(store, shards)
    assert found.value.numbers == (0, 3)


def test_what_is_damaged_later_breaks_the_stream(
    store: Store, manifest: Manifest, tmp_path: Path
) -> None:
    (tmp_path / "store" / manifest.shards[1].key).write_bytes(_PIECES[1][:-1] + b"x")
    with pytest.raises(CorruptedError):
        b"".join(manifest.stream(store))
    store.delete(manifest.shards[0].key)
    with pytest.raises(MissingObjectError):
        manifest.stream(store)
