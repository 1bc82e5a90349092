"""Library, REST and command line give the same numbers for the same model and seed."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer, format_table, read_table
from gcvae_cli.__main__ import main
from tests.running_service import Running

TEXT = b"mpg,cylinders,fuel,sold\n20.1,4,petrol,yes\n22.5,6,?,no\n30.0,,diesel,yes\n"


@pytest.fixture(scope="module")
def folder(
    service: Running, model: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The service's model as a file, and rows."""
    folder = tmp_path_factory.mktemp("same")
    artifact = service.http.get(f"/v1/models/{model['id']}/artifact")
    (folder / "model.gcvae").write_bytes(artifact.content)
    (folder / "rows.csv").write_bytes(TEXT)
    return folder


@pytest.fixture(scope="module")
def library(folder: Path) -> Synthesizer:
    """The model in the library."""
    return Synthesizer.load(folder / "model.gcvae")


def by_command(folder: Path, name: str, *words: str) -> bytes:
    """What a command on the model writes."""
    command, *rest = words
    output = folder / name
    asked = [command, str(folder / "model.gcvae"), *rest, "--seed", "5", "-o", str(output)]
    assert main(asked) == 0
    return output.read_bytes()


def test_samples(
    service: Running, model: dict[str, Any], folder: Path, library: Synthesizer
) -> None:
    body = {"rows": 700, "seed": 5}
    headers = {"Accept": "text/csv"}
    path = f"/v1/models/{model['id']}/samples"
    rest = service.http.post(path, json=body, headers=headers).content
    drawn = format_table(library.sample(700, seed=5), library.schema)
    assert rest == by_command(folder, "drawn.csv", "sample", "--rows", "700")
    pd.testing.assert_frame_equal(
        read_table(io.BytesIO(rest), format="csv"), drawn, check_dtype=False
    )


def test_scores(
    service: Running, model: dict[str, Any], folder: Path, library: Synthesizer
) -> None:
    path = f"/v1/models/{model['id']}/scores?draws=30&seed=5"
    rest = service.http.post(path, content=TEXT, headers={"Content-Type": "text/csv"}).json()
    written = pd.read_csv(
        io.BytesIO(
            by_command(folder, "scores.csv", "score", str(folder / "rows.csv"), "--draws", "30")
        )
    )
    found = library.log_likelihood(read_table(folder / "rows.csv"), draws=30, seed=5)
    for name in ("log_likelihood", "standard_error", "percentile"):
        expected = found[name].to_numpy()
        assert np.isfinite(expected).all()
        assert [score[name] for score in rest["scores"]] == pytest.approx(expected, rel=1e-12)
        assert written[name].to_numpy() == pytest.approx(expected, rel=1e-12)


def test_imputations(
    service: Running, model: dict[str, Any], folder: Path, library: Synthesizer
) -> None:
    path = f"/v1/models/{model['id']}/imputations?draws=2&seed=5"
    headers = {"Content-Type": "text/csv", "Accept": "text/csv"}
    rest = service.http.post(path, content=TEXT, headers=headers).content
    written = by_command(folder, "filled.csv", "impute", str(folder / "rows.csv"), "--draws", "2")
    assert rest == written
    found = library.impute(read_table(folder / "rows.csv"), draws=2, seed=5)
    assert read_table(io.BytesIO(rest), format="csv").to_dict() == found.astype(str).to_dict()


@pytest.mark.parametrize("kind", ["expected", "within", "total", "data"])
def test_maps(
    service: Running, model: dict[str, Any], folder: Path, library: Synthesizer, kind: str
) -> None:
    path = f"/v1/models/{model['id']}/dependencies?kind={kind}&seed=5"
    rest = service.http.get(path).json()
    written = json.loads(by_command(folder, "map.json", "dependencies", "--kind", kind))
    found = library.dependencies(kind, seed=5).to_json()
    assert {key: rest[key] for key in found} == found
    assert written == found
