"""Library, REST and command line give the same numbers for the same model and seed."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from gcvae import Synthesizer, format_table, read_table
from gcvae.artifact.file import unpack_tensors
from gcvae.dependence.notes import KINDS
from gcvae.files.delimited import write_delimited
from gcvae.sampling.imputation_stream import stream_completed
from gcvae.schema.kinds import ColumnKind
from gcvae_cli.__main__ import main
from tests.lengths import first_of
from tests.running_service import Running, work

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
    pd.testing.assert_frame_equal(read_table(io.BytesIO(rest)), drawn, check_dtype=False)


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
    found = found.astype(str).reset_index(drop=True)  # a file has no index
    assert read_table(io.BytesIO(rest)).to_dict() == found.to_dict()


@pytest.mark.parametrize("kind", ["expected", "total", "data"])
def test_maps(
    service: Running, model: dict[str, Any], folder: Path, library: Synthesizer, kind: str
) -> None:
    path = f"/v1/models/{model['id']}/dependencies?kind={kind}&seed=5"
    rest = service.http.get(path).json()
    written = json.loads(by_command(folder, "map.json", "dependencies", "--kind", kind))
    found = library.dependencies(kind, seed=5).to_json()
    assert {key: rest[key] for key in found} == found
    assert written == found


# What the service gives of a model that it trained, and what the library that fitted it gives.

SEED: dict[str, Any] = {"seed": 5}
KNOWN = (("лампа", "дом", 3), ("коврик", "дом", 1), ("мяч", "спорт", 3))
FULL_SCHEMA: dict[str, Any] = {
    "columns": [
        {"name": "ключ", "kind": "identifier"},
        {"name": "等级", "kind": "ordinal", "levels": ["low", "mid", "high"]},
        {"name": "цена", "kind": "continuous"},
        {"name": "9", "kind": "integer"},
        {"name": "секрет", "kind": "categorical", "drop": True},
    ],
    "rules": [
        {"rule": "combinations(товар, склад, категория)", "keep": "hard"},
        {"rule": "بداية <= إلى", "keep": "hard"},
        {"rule": "`цена` <= 25 or `等级` != 'low'", "keep": "hard"},
    ],
    "find_rules": True,
}
"""Every kind of column, every hard rule, names in four scripts and in no alphabetical order."""


def _full_table(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    known = [KNOWN[i] for i in rng.integers(0, len(KNOWN), n)]
    level = rng.choice(["low", "mid", "high"], n)
    price = np.where(level == "low", rng.integers(100, 2500, n), rng.integers(100, 5000, n)) / 100
    first = np.datetime64("2024-02-01") + rng.integers(0, 200, n)
    whole = rng.integers(-50, 900, n).astype(str)
    whole[rng.random(n) < 0.1] = "?"
    category = np.array([each[1] for each in known])
    category[rng.random(n) < 0.05] = ""
    return pd.DataFrame(
        {
            "товар": [each[0] for each in known],
            "цена": [f"{each:.2f}" for each in price],
            "إلى": (first + rng.integers(0, 600, n)).astype(str),
            "بداية": first.astype(str),
            "категория": category,
            "ключ": [f"№{each}" for each in rng.permutation(n)],
            "等级": level,
            "9": whole,
            "да?": rng.choice(["yes", "no"], n),
            "валюта": "€",
            "склад": [str(each[2]) for each in known],
            "товар, снова": [each[0] for each in known],
            "секрет": [f"secret {each}" for each in range(n)],
        },
        dtype=object,
    )


@dataclass(frozen=True)
class Full:
    """A table with every feature, the model that the library fitted, and the service's own."""

    table: pd.DataFrame
    fitted: Synthesizer
    path: str
    service: Running

    @property
    def questions(self) -> pd.DataFrame:
        """Rows with more blanks, and their columns in another order than the table's."""
        rows = self.table.head(20).copy()
        for place, name in enumerate(("товар", "цена", "等级", "да?", "إلى", "склад")):
            rows.loc[place::6, name] = ""
        return rows[sorted(rows.columns)]

    def post(self, call: str, content: object, **options: object) -> bytes:
        """What a call on the model answers: to a document, or to rows as CSV."""
        asked: dict[str, Any] = {"params": options}
        if isinstance(content, pd.DataFrame):
            asked |= {"content": b"".join(write_delimited(content))}
            asked |= {"headers": {"Content-Type": "text/csv"}}
        else:
            asked |= {"json": content}
        answer = self.service.http.post(f"{self.path}/{call}", **asked)
        assert answer.status_code == 200, answer.text
        return answer.content


@pytest.fixture(scope="module")
def full(service: Running) -> Full:
    """Of the default preset, whose codec has most to remember."""
    table = _full_table()
    data = b"".join(write_delimited(table))
    settings = {"max_steps": 100, "d_hidden": 8, "d_latent": 2, "d_sum": 8, "d_column": 6}
    fitted = Synthesizer.fit(
        read_table(io.BytesIO(data)), schema=FULL_SCHEMA, settings=settings, device="cpu", **SEED
    )
    upload = {"files": {"file": ("t.csv", data)}, "data": {"schema": json.dumps(FULL_SCHEMA)}}
    dataset = service.http.post("/v1/datasets", **upload).json()  # type: ignore[arg-type]
    asked = {"dataset_id": dataset["id"], "training": {**SEED, "device": "cpu", **settings}}
    model = service.http.post("/v1/models", json=asked).json()
    work(service, model["job_id"])
    return Full(table, fitted, f"/v1/models/{model['id']}", service)


def test_the_service_trains_the_model_that_the_library_fits(full: Full) -> None:
    tensors, manifest = unpack_tensors(full.fitted.to_bytes())
    stored, found = unpack_tensors(full.service.http.get(f"{full.path}/artifact").content)
    for each in (manifest, found):
        each["training_record"].pop("seconds")
    assert found == manifest
    assert all(torch.equal(stored[name], tensors[name]) for name in tensors)
    kinds = {column.kind for column in full.fitted.schema if not column.drop}
    assert kinds == set(ColumnKind)
    assert list(full.fitted.codec.copies) == ["товар, снова"]


CONDITIONS: dict[str, dict[str, Any]] = {
    "none": {"rows": 300},
    "given": {"rows": 60, "given": {"товар": ["мяч", "коврик"], "9": {"min": 0, "max": 800.5}}},
    "given, missing": {"rows": 60, "given": {"9": None, "等级": "low"}},
    "distribution": {"rows": 60, "distribution": {"等级": {"high": 0.75, "low": 0.25}}},
    "given_rows": {"given_rows": [{"товар": "мяч", "9": 7}, {"цена": 3.5, "да?": True}, {}]},
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_rows_of_a_fitted_model(full: Full, name: str) -> None:
    asked = CONDITIONS[name]
    rows = dict(asked)
    if known := rows.get("given_rows"):
        rows["given_rows"] = pd.DataFrame(known, dtype=object)
    drawn = full.fitted.sample(**rows, **SEED)
    assert len(drawn) == asked.get("rows", 3)
    expected = b"".join(write_delimited(format_table(drawn, full.fitted.schema)))
    assert full.post("samples", asked | SEED | {"format": "csv"}) == expected


def test_scores_of_a_fitted_model_with_columns_in_another_order(full: Full) -> None:
    rows = read_table(io.BytesIO(b"".join(write_delimited(full.questions))))
    expected = full.fitted.log_likelihood(rows, draws=20, **SEED)
    assert np.isfinite(expected["log_likelihood"]).any()
    found = pd.read_csv(
        io.BytesIO(full.post("scores", full.questions, draws=20, format="csv", **SEED)),
        float_precision="round_trip",
    )
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    assert [name for name in found if name.startswith("contributions.")] == [
        f"contributions.{name}" for name in full.fitted.scorer.names()
    ]
    in_json = json.loads(full.post("scores", full.questions, draws=20, **SEED))["scores"]
    assert [list(row["contributions"]) for row in in_json] == [full.fitted.scorer.names()] * 20


@pytest.mark.parametrize("draws", [1, 3])
def test_completed_rows_of_a_fitted_model(full: Full, draws: int) -> None:
    rows = read_table(io.BytesIO(b"".join(write_delimited(full.questions))))
    completed = full.fitted.impute(rows, draws, **SEED)
    expected = b"".join(stream_completed([completed], full.fitted.schema, "csv"))
    assert full.post("imputations", full.questions, draws=draws, format="csv", **SEED) == expected


def test_encodings_of_a_fitted_model(full: Full) -> None:
    rows = read_table(io.BytesIO(b"".join(write_delimited(full.questions))))
    expected = full.fitted.encode(rows).to_csv(index=False).encode()
    assert full.post("encodings", full.questions, format="csv") == expected


@pytest.mark.parametrize("kind", first_of(*KINDS))
def test_maps_of_a_fitted_model(full: Full, kind: str) -> None:
    row = {"товар": "мяч", "цена": "3.50", "等级": None}
    if kind == "local":
        found = json.loads(full.post("dependencies", {"row": row, **SEED}))
        expected = full.fitted.dependencies(kind, **SEED, row=row).to_json()
    else:
        query = {"kind": kind, **SEED}
        found = full.service.http.get(f"{full.path}/dependencies", params=query).json()
        expected = full.fitted.dependencies(kind, **SEED).to_json()
    assert {key: found[key] for key in expected} == expected
