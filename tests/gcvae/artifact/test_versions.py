"""A model file of an older version is read, and its model does what it did.

`artifacts/version-3-….gcvae` were written by the last commit whose library wrote version 3: an
orders table of 240 rows, 60 steps, of the presets `default` and `paper-gcvae`. They are stored, not
made anew: no library writes them any more.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gcvae import Synthesizer
from gcvae.artifact.file import read_artifact, unpack_tensors
from gcvae.artifact.versions import VERSION, current_manifest
from gcvae.codec.identifiers import IdentifierCodec
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.codec.table_codec import TableCodec
from gcvae.errors import ArtifactError
from gcvae.schema.columns import TableSchema
from tests.wordings import refuses

STORED = sorted((Path(__file__).parents[1] / "artifacts").glob("version-*.gcvae"))
CATEGORIES = {"lamp": "home", "rug": "home", "shoe": "wear", "mat": "sport", "bike": "sport"}


def test_there_is_a_stored_file_of_each_older_version() -> None:
    versions = {unpack_tensors(read_artifact(path))[1]["version"] for path in STORED}
    assert versions == set(range(3, VERSION))


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_stored_model_draws_scores_maps_and_is_saved_as_the_version_of_now(path: Path) -> None:
    stored = Synthesizer.load(path)
    rows = stored.sample(300, seed=1)
    assert len(rows) == 300
    assert np.isfinite(stored.log_likelihood(rows, draws=5)["log_likelihood"]).all()
    assert stored.dependencies("expected").columns == tuple(c.name for c in stored.codec.columns)
    again = Synthesizer.from_bytes(stored.to_bytes())
    assert unpack_tensors(again.to_bytes())[1]["version"] == VERSION
    assert again.to_bytes() == stored.to_bytes()
    assert again.sample(300, seed=1).equals(rows)


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_version_3_draws_all_its_combinations_whatever_the_order_of_their_names(path: Path) -> None:
    rows = Synthesizer.load(path).sample(1000, seed=1)
    assert set(rows["product"]) == set(CATEGORIES)
    assert (rows["product"].map(CATEGORIES) == rows["category"]).all()


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_version_3_forgets_what_it_kept_of_dropped_columns(path: Path) -> None:
    stored = unpack_tensors(read_artifact(path))[1]
    [note] = (column for column in stored["schema"]["columns"] if column["name"] == "note")
    assert note["levels"][0] in json.dumps(stored["codec"]["schema"])
    again = unpack_tensors(Synthesizer.load(path).to_bytes())[1]
    assert note["levels"][0] not in json.dumps(again)
    for schema in (again["schema"], again["codec"]["schema"]):
        assert {"name": "note", "drop": True} in schema["columns"]


def test_atoms_of_version_3_stay_below_all_other_numbers() -> None:
    [path] = (path for path in STORED if path.stem == "version-3-default")
    manifest = unpack_tensors(read_artifact(path))[1]
    numbers = [c for c in manifest["codec"]["columns"].values() if "atoms" in c]
    assert numbers
    for column in numbers:
        column |= {"atoms": [0.0, 0.5], "scores": [0.0, 0.7, 0.0]}
    codec = TableCodec.from_json(current_manifest(manifest)["codec"])
    again = TableCodec.from_json(codec.to_json())
    for column in (*codec.columns, *again.columns):
        if isinstance(column, QuantileCodec):
            assert (column.places == -np.inf).all()
            assert len(column.places) >= 2


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_identifiers_of_version_3_follow_the_seed_and_are_none_of_those_it_stays_clear_of(
    path: Path,
) -> None:
    stored = Synthesizer.load(path)
    one, other = (stored.sample(2000, seed=seed) for seed in (1, 2))
    assert one["order"].is_unique
    assert one["order"].str.fullmatch(r"synthetic-\d{8}").all()
    assert one["number"].is_unique
    assert one["number"].between(10**6, 10**7 - 1).all()
    assert one["number"].dtype == np.int64
    for name in ("order", "number"):
        assert len(set(one[name]) & set(other[name])) < 10


@pytest.mark.parametrize("start", [1, 999, 10**15, 2**62 + 60, -(2**63) + 1025, -(10**17)])
def test_numbers_of_version_3_begin_where_they_did(start: int) -> None:
    manifest = unpack_tensors(read_artifact(STORED[0]))[1]
    manifest["codec"]["columns"]["number"]["start"] = start
    codec = current_manifest(manifest)["codec"]
    keys = IdentifierCodec.from_json(
        TableSchema.from_json(codec["schema"])["number"], codec["columns"]["number"]
    ).decode(5000, 0, seed=1)
    assert keys.is_unique
    assert keys.min() >= start
    assert keys.max() < start + 10**15 or start > 0


def test_an_upgrade_leaves_the_manifest_that_it_was_given() -> None:
    manifest = unpack_tensors(read_artifact(STORED[0]))[1]
    current_manifest(manifest)
    assert manifest == unpack_tensors(read_artifact(STORED[0]))[1]


@pytest.mark.parametrize("version", [2, VERSION + 1, None, "3"])
def test_another_version_is_an_error_that_names_those_that_are_read(version: object) -> None:
    with refuses(ArtifactError):
        current_manifest({"format": "gcvae-model", "version": version})
