"""Models under differential privacy: nothing of the real table stands in them but by its noise."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer
from gcvae.artifact.file import unpack_tensors
from gcvae.cells.values import parse_table
from gcvae.errors import BudgetError, CancelledError, SchemaError, TableError
from gcvae.training.differential_privacy.budget import Budget
from gcvae.training.differential_privacy.private_table import private_table
from gcvae.training.preparation import table_digest
from gcvae.training.progress import Progress
from tests.gcvae.training.differential_privacy.tables import (
    N_ROWS,
    declared_document,
    declared_frame,
    document_without,
)
from tests.wordings import refuses

PROMISE = {"epsilon": 8, "delta": 1e-5, "target": "aktiv", "discover": ["stadt"]}
QUICK = {"max_steps": 20, "patience_steps": 20, "annealing": 0.0}
ONCE = "Sankt-Nirgendwo-17"
KEY = "SECRET-KEY-4711"
BEYOND = "987654321987"  # so long that no other number has its digits by chance


def planted() -> tuple[pd.DataFrame, dict[str, Any]]:
    """A table with marked cells, and its schema: a level of one row, a key, a far number."""
    frame = declared_frame()
    frame["stadt"] = np.where(np.arange(N_ROWS) % 3 == 0, "Köln", "Bonn")
    frame["key"] = [f"{KEY}-{i}" for i in range(N_ROWS)]
    frame["note"] = [f"note {KEY} {i}" for i in range(N_ROWS)]
    frame.loc[4, "stadt"] = ONCE
    frame.loc[5, "years"] = BEYOND
    document = declared_document()
    document["columns"] += [
        {"name": "stadt", "kind": "categorical", "missing": {"allowed": False}},
        {"name": "key", "kind": "identifier"},
        {"name": "note", "drop": True},
    ]
    return frame, document


def fitted(frame: pd.DataFrame, document: Mapping[str, Any], **options: Any) -> Synthesizer:
    promise = PROMISE if "stadt" in frame else {"epsilon": 8, "delta": 1e-5}
    settings = {"differential_privacy": promise} | QUICK
    return Synthesizer.fit(frame, schema=document, preset="fast", settings=settings, **options)


@pytest.fixture(scope="module")
def seen() -> list[Progress]:
    return []


@pytest.fixture(scope="module")
def synthesizer(seen: list[Progress]) -> Synthesizer:
    frame, document = planted()
    return fitted(frame, document, progress=seen.append)


def test_nothing_that_was_planted_is_in_the_artifact_or_its_rows(
    synthesizer: Synthesizer, seen: list[Progress]
) -> None:
    frame, _ = planted()
    artifact = synthesizer.to_bytes()
    _, manifest = unpack_tensors(artifact)
    drawn = synthesizer.sample(2_000, seed=1).to_csv()
    real = parse_table(frame.drop(columns="note"), synthesizer.schema)
    places = [json.dumps(manifest, ensure_ascii=False), drawn, repr(seen)]
    places += [" ".join(synthesizer.table_notes)]
    for marker in (ONCE, KEY, BEYOND, table_digest(real)):
        assert marker.encode() not in artifact
        assert [marker in place for place in places] == [False] * len(places)
    assert "Köln" in places[0]


def test_the_record_holds_the_ledger(synthesizer: Synthesizer) -> None:
    found = synthesizer.training_record["differential_privacy"]
    assert (found["epsilon"], found["delta"]) == (8.0, 1e-5)
    assert found["rho_spent"] <= found["rho"]
    assert found["rho_spent"] == pytest.approx(sum(e["rho"] for e in found["measured"]))
    kinds = {entry["what"] for entry in found["measured"]}
    assert kinds == {"levels", "rows left out", "bins", "one-way", "selection", "triple"}
    assert sum(e.get("delta", 0) for e in found["measured"]) == pytest.approx(1e-6)
    assert 0.5 < found["attack_ceilings"]["auc"] < 1
    assert abs(found["rows_estimated"] - N_ROWS) < 60
    assert {c["name"] for c in found["declared"]} == set(planted()[0])


def test_private_rows_are_few_is_said(synthesizer: Synthesizer) -> None:
    assert "few for differential privacy" in synthesizer.table_notes[0]


def test_progress_has_the_phases_and_only_grows(seen: list[Progress]) -> None:
    phases = list(dict.fromkeys(p.phase for p in seen))
    assert phases == ["preparing", "counting", "estimating", "training", "finishing"]
    fractions = [p.fraction for p in seen]
    assert fractions == sorted(fractions)


def test_rows_are_like_the_table_and_survive_the_file(
    synthesizer: Synthesizer, tmp_path: Path
) -> None:
    rows = synthesizer.sample(1_000, seed=1)
    assert list(rows) == [name for name in planted()[0] if name != "note"]
    assert rows["years"].astype(int).between(0, 110).all()
    assert set(rows["группа"]) <= {"а", "б", "в"}
    assert rows["größe"].isna().mean() == pytest.approx(0.1, abs=0.08)
    synthesizer.save(tmp_path / "model.gcvae")
    loaded = Synthesizer.load(tmp_path / "model.gcvae")
    pd.testing.assert_frame_equal(loaded.sample(50, seed=3), synthesizer.sample(50, seed=3))
    assert loaded.training_record == synthesizer.training_record


FEW = ["группа", "years", "aktiv"]


def of_few(document: dict[str, Any]) -> dict[str, Any]:
    return document | {"columns": [c for c in document["columns"] if c["name"] in FEW]}


def estimated(frame: pd.DataFrame, **more: Any) -> pd.DataFrame:
    document = of_few(declared_document()) | more
    return private_table(frame, document, Budget(8.0, 1e-5), 0).cells


def test_one_seed_gives_two_sets_of_noise_and_columns_may_come_in_any_order() -> None:
    frame = declared_frame()[FEW]
    first, second = estimated(frame), estimated(frame[frame.columns[::-1]])
    assert list(first) == list(frame)
    assert list(second) == list(frame.columns[::-1])
    assert not first.equals(second[list(first)])


def test_hard_rules_hold_in_private_rows() -> None:
    at_least = {"rule": "years >= 20", "keep": "hard"}
    cells = estimated(declared_frame()[FEW], rules=[at_least], find_rules=True)
    assert cells["years"].astype(int).min() >= 20


def test_a_schema_that_leaves_something_open_is_refused_before_any_count() -> None:
    with refuses(SchemaError):
        fitted(declared_frame(), document_without("years", "maximum"))


def test_a_table_none_of_which_fits_its_declaration_is_refused_by_noisy_counts() -> None:
    frame = declared_frame()[FEW].assign(**{"группа": "zzz"})
    with refuses(TableError):
        estimated(frame)


class KeptBytes:
    """A store in memory."""

    interval_seconds = 0.0

    def __init__(self) -> None:
        self.data: bytes | None = None
        self.continued: list[bool] = []
        self.n_counted = 0

    def before_private_queries(self) -> None:
        self.n_counted += 1

    def load(self) -> bytes | None:
        return self.data

    def restored(self, *, is_continued: bool) -> None:
        self.continued.append(is_continued)

    def save(self, data: bytes) -> None:
        self.data = data


def test_a_run_whose_budget_is_refused_counts_nothing() -> None:
    class Refusing(KeptBytes):
        def before_private_queries(self) -> None:
            super().before_private_queries()
            raise BudgetError("the cap is reached")

    frame, document = declared_frame()[FEW], of_few(declared_document())
    store, phases = Refusing(), list[str]()
    with refuses(BudgetError):
        fitted(frame, document, checkpoints=store, progress=lambda p: phases.append(p.phase))
    assert (store.n_counted, store.data) == (1, None)
    assert phases.count("counting") <= 1  # it was about to begin
    assert "estimating" not in phases
    with pytest.raises(SchemaError):  # a gap in the declaration is told before anything is spent
        fitted(frame, {"columns": []}, checkpoints=store)
    assert store.n_counted == 1


def test_a_run_that_is_taken_up_again_does_not_ask_the_table_twice() -> None:
    frame, document = declared_frame()[FEW], of_few(declared_document())
    store, phases = KeptBytes(), list[str]()

    def stop_in_training(progress: Progress) -> None:
        if progress.phase == "training":
            raise CancelledError

    with pytest.raises(CancelledError):
        fitted(frame, document, checkpoints=store, progress=stop_in_training)
    assert store.data is not None
    kept = store.data
    again = fitted(frame, document, checkpoints=store, progress=lambda p: phases.append(p.phase))
    assert "counting" not in phases
    assert store.n_counted == 1
    record = json.dumps(again.training_record["differential_privacy"]["measured"])
    assert record.encode() in kept
