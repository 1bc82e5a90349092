"""The stored models are those that this build fits: all but the weights is compared."""

from __future__ import annotations

from typing import Any

import pytest

from gcvae.artifact.file import unpack_tensors
from gcvae.training.settings import PRESETS
from tests.fitted.models import SETTINGS, fit, path_of

COMPARED = ("format", "version", "schema", "codec", "hard_rules", "functions", "preset")


def rounded(document: Any) -> Any:
    """A document with its numbers to nine digits: processors differ in the last ones."""
    if isinstance(document, dict):
        return {name: rounded(member) for name, member in document.items()}
    if isinstance(document, list):
        return [rounded(member) for member in document]
    return float(f"{document:.9g}") if isinstance(document, float) else document


@pytest.mark.parametrize("preset", PRESETS)
def test_a_stored_model_is_one_of_this_build(preset: str) -> None:
    stored, manifest = unpack_tensors(path_of(preset).read_bytes())
    again, expected = unpack_tensors(fit(preset, max_steps=2).to_bytes())
    for member in COMPARED:
        assert rounded(manifest[member]) == rounded(expected[member]), "make fitted"
    assert manifest["config"] == expected["config"] | {"max_steps": SETTINGS["max_steps"]}
    assert {name: tensor.shape for name, tensor in stored.items()} == {
        name: tensor.shape for name, tensor in again.items()
    }, "make fitted"


def test_no_file_is_of_a_preset_that_is_gone() -> None:
    assert {path.stem for path in path_of("default").parent.glob("*.gcvae")} == set(PRESETS)
