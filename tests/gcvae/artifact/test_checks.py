"""A model file that is whole, by its checksum, may still be no model."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from gcvae import Synthesizer
from gcvae.artifact.file import pack_tensors, read_artifact, unpack_tensors
from gcvae.errors import ArtifactError
from gcvae.trial import try_out
from tests.fitted.models import path_of
from tests.wordings import refuses

STORED = [path_of("default"), path_of("paper-gcvae")]
NAMES = [path.stem for path in STORED]
Alteration = Callable[[dict[str, torch.Tensor], dict[str, Any]], None]


def altered(path: Path, alter: Alteration) -> bytes:
    """A stored model with something else in it, and the checksum of that."""
    tensors, manifest = unpack_tensors(read_artifact(path))
    manifest = copy.deepcopy(manifest)
    alter(tensors, manifest)
    return pack_tensors(tensors, manifest)


def use(data: bytes) -> None:
    """What is done with a file from elsewhere."""
    try_out(Synthesizer.from_bytes(data))


@pytest.mark.parametrize("path", STORED, ids=NAMES)
def test_a_model_that_the_library_wrote_works(path: Path) -> None:
    use(read_artifact(path))
    use(Synthesizer.load(path).to_bytes())


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
@pytest.mark.parametrize("path", STORED, ids=NAMES)
def test_weights_that_are_no_numbers_are_refused_by_name(path: Path, number: float) -> None:
    def alter(tensors: dict[str, torch.Tensor], _: dict[str, Any]) -> None:
        tensors["encoder.eta.bias"][0] = number

    with refuses(ArtifactError):
        use(altered(path, alter))


@pytest.mark.parametrize(
    ("setting", "value"),
    [("d_hidden", 8192), ("n_hidden_layers", 32), ("d_latent", 512),
     ("n_components", 128), ("d_column", 4096), ("d_sum", 4096)],
)  # fmt: skip
def test_a_model_larger_than_its_file_is_refused_before_it_is_built(
    setting: str, value: int
) -> None:
    def alter(_: dict[str, torch.Tensor], manifest: dict[str, Any]) -> None:
        manifest["config"] |= {setting: value, "d_latent": 512, "d_hidden": 8192}
        manifest["config"] |= {"n_hidden_layers": 32}

    with refuses(ArtifactError):
        use(altered(STORED[0], alter))


def _set(path: str, value: Any) -> Alteration:
    def alter(_: dict[str, torch.Tensor], manifest: dict[str, Any]) -> None:
        *steps, last = path.split("/")
        place: Any = manifest
        for step in steps:
            place = place[int(step)] if isinstance(place, list) else place[step]
        place[int(last) if isinstance(place, list) else last] = value

    return alter


def _drop(path: str) -> Alteration:
    def alter(_: dict[str, torch.Tensor], manifest: dict[str, Any]) -> None:
        *steps, last = path.split("/")
        place: Any = manifest
        for step in steps:
            place = place[step]
        del place[last]

    return alter


def _rename_columns(_: dict[str, torch.Tensor], manifest: dict[str, Any]) -> None:
    for column in manifest["schema"]["columns"]:
        column["name"] = f"../{column['name']}"
    manifest["schema"]["rules"] = []


def _widen(tensors: dict[str, torch.Tensor], _: dict[str, Any]) -> None:
    tensors["encoder.eta.bias"] = torch.zeros(99)


def _as_doubles(tensors: dict[str, torch.Tensor], _: dict[str, Any]) -> None:
    tensors["encoder.eta.bias"] = tensors["encoder.eta.bias"].double()


def _add_weights(tensors: dict[str, torch.Tensor], _: dict[str, Any]) -> None:
    tensors["../../smuggled"] = torch.zeros(3)


def _leave_weights(tensors: dict[str, torch.Tensor], _: dict[str, Any]) -> None:
    del tensors["encoder.eta.bias"]


ALTERED: dict[str, Alteration] = {
    "wrong shape": _widen,
    "wrong type of number": _as_doubles,
    "more weights": _add_weights,
    "fewer weights": _leave_weights,
    "a schema of other columns than the codec": _rename_columns,
    "no schema": _drop("schema"),
    "no codec": _drop("codec"),
    "no record": _drop("training_record"),
    "no hard rules": _drop("hard_rules"),
    "schema is a list": _set("schema", []),
    "codec is text": _set("codec", "codec"),
    "record is a list": _set("training_record", []),
    "record has no bound": _drop("training_record/bound_held_out"),
    "bound is text": _set("training_record/bound_held_out", "12"),
    "preset is a list": _set("training_record/preset", ["default"]),
    "no scores of held-out rows": _set("training_record/held_out_scores", {}),
    "scores are no numbers": _set("training_record/held_out_scores/blanks_integrated", ["a"]),
    "unknown setting": _set("config/run", "rm"),
    "setting out of range": _set("config/d_latent", 10**9),
    "setting not settled": _set("config/d_hidden", None),
    "map of other columns": _set("data_map/columns", ["a"]),
    "map of no shape": _set("data_map/tau", [[1.0]]),
    "map of text": _set("data_map/tau", "tau"),
    "combinations of unknown columns": _set("hard_rules/combinations", {"7": {}}),
    "codec has no columns": _set("codec/columns", {}),
    "copies of nothing": _set("codec/copies", {"nothing": "nowhere"}),
}  # fmt: skip


@pytest.mark.parametrize("what", ALTERED)
@pytest.mark.parametrize("path", STORED, ids=NAMES)
def test_parts_that_do_not_fit_together_are_an_artifact_error(path: Path, what: str) -> None:
    with pytest.raises(ArtifactError):
        use(altered(path, ALTERED[what]))


@pytest.mark.slow
def test_any_number_of_the_codec_that_is_another_gives_a_working_model_or_an_error() -> None:
    """Whatever stands in the codec of a column: no other exception, no rows of no numbers."""
    path = STORED[-1]
    _, manifest = unpack_tensors(read_artifact(path))
    kinds = itertools.cycle([(None, 1e300), ([1e300, -1e300], "x")])  # each member meets two
    for name, part in manifest["codec"]["columns"].items():
        for member in part:
            for value in next(kinds):
                alter = _set(f"codec/columns/{name}/{member}", value)
                try:
                    use(altered(path, alter))
                except ArtifactError:
                    continue


@pytest.mark.parametrize("number", ["NaN", "1e999", "-Infinity"])
def test_a_manifest_of_numbers_that_are_none_is_refused(number: str) -> None:
    data = _with_text(lambda text: text.replace('"kl_warm_up":0.0', f'"kl_warm_up":{number}'))
    with refuses(ArtifactError):
        Synthesizer.from_bytes(data)


@pytest.mark.parametrize("text", ["[]", "3", '"a"', "{", "[" * 100_000, '{"a": "\\ud800"}'])
def test_a_manifest_that_is_no_document_is_refused(text: str) -> None:
    with refuses(ArtifactError):
        Synthesizer.from_bytes(_with_text(lambda _: text))


def _with_text(change: Callable[[str], str]) -> bytes:
    """A stored model with another text as its manifest, and the checksum of that."""
    import json

    from safetensors.torch import save

    from gcvae.artifact.file import _METADATA_KEY, _digest, _envelope

    data = read_artifact(STORED[-1])
    tensors, _ = unpack_tensors(data)
    text = change(_envelope(data)["manifest"])
    envelope = json.dumps({"manifest": text, "sha256": _digest(tensors, text)})
    return save(tensors, metadata={_METADATA_KEY: envelope})
