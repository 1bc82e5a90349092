"""A model file of another version is refused by name, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcvae import Synthesizer
from gcvae.artifact.file import pack_tensors, unpack_tensors
from gcvae.artifact.versions import VERSION
from gcvae.errors import ModelVersionError
from tests.fitted.models import fitted
from tests.wordings import refuses


@pytest.mark.parametrize("version", [4, VERSION + 1, None, "3"])
def test_another_version_is_an_error_that_names_both(version: object, tmp_path: Path) -> None:
    tensors, manifest = unpack_tensors(fitted().to_bytes())
    (tmp_path / "m.gcvae").write_bytes(pack_tensors(tensors, manifest | {"version": version}))
    with refuses(ModelVersionError):
        Synthesizer.load(tmp_path / "m.gcvae")
