"""The service gives the numbers of the library for the same table, settings and seed.

That commands give those of the service stands in `tests/gcvae_cli/test_verbs_at_a_service.py`.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
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
from tests.lengths import first_of
from tests.running_service import Running, work

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
    settings = {"max_steps": 25, "d_hidden": 8, "d_latent": 2, "d_sum": 8, "d_column": 6}
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


def test_completed_rows_of_a_fitted_model(full: Full) -> None:
    draws = 3
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
