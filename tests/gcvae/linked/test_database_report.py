"""The report of a database: real rows pass, rows of strangers do not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gcvae import DatabaseSynthesizer

Tables = dict[str, pd.DataFrame]


def households(seed: int) -> Tables:
    """Parents and children that have a level of their parent's."""
    rng = np.random.default_rng(seed)
    n = 800
    level = rng.choice(["low", "high"], n)
    of = np.repeat(np.arange(n), rng.integers(1, 5, n))
    scale = np.where(level[of] == "high", 30.0, 5.0)
    return {
        "parents": pd.DataFrame(
            {"id": np.arange(n), "level": level, "age": rng.integers(18, 80, n)}
        ),
        "children": pd.DataFrame(
            {"parent_id": of, "amount": np.round(scale * rng.exponential(size=len(of)), 2)}
        ),
    }


@pytest.fixture(scope="module")
def model() -> DatabaseSynthesizer:
    settings = {"max_steps": 10}
    return DatabaseSynthesizer.fit(households(0), preset="fast", settings=settings, progress=False)


@pytest.mark.slow
def test_other_real_rows_pass_and_strangers_children_do_not(model: DatabaseSynthesizer) -> None:
    passed = model.report(households(0), households(1), households(2))
    assert {name: t.parts["fidelity"].verdict for name, t in passed.tables.items()} == {
        "parents": "green",
        "children": "green",
    }
    strangers = households(2)
    children = strangers["children"]
    rng = np.random.default_rng(3)
    strangers["children"] = children.assign(amount=rng.permutation(children["amount"]))
    failed = model.report(households(0), households(1), strangers)
    assert failed.tables["children"].parts["fidelity"].verdict == "red"
    [key] = failed.keys
    assert (key.table, key.columns, key.referred, key.found) == (
        "children",
        ("parent_id",),
        "parents",
        1.0,
    )
    assert key.unlike < 0.15


def test_the_report_of_drawn_tables_is_saved_as_pages(
    model: DatabaseSynthesizer, tmp_path: Path
) -> None:
    report = model.report(households(0), seed=1)
    document = json.loads(json.dumps(report.to_json()))
    assert set(document["tables"]) == {"parents", "children"}
    report.save(tmp_path / "report")
    pages = sorted(path.name for path in (tmp_path / "report").iterdir())
    assert pages == ["index.html", "table-1.html", "table-2.html"]
    index = (tmp_path / "report" / "index.html").read_text()
    assert 'href="table-2.html"' in index
    assert "children (parent_id) → parents" in index
