"""What attacks find on tables of which no row can have leaked: nothing, as often as they say.

`make test-report` tries 200 tables; the suite an eighth of them, and judges them together.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import infer_schema
from gcvae.evaluation.report.privacy import privacy_part
from gcvae.evaluation.report.rows import ReportRows
from tests.lengths import TIMES

TABLES = 25 * min(max(TIMES, 1), 8)
_N = 120


def _table(n_rows: int, random: np.random.Generator) -> pd.DataFrame:
    x = random.normal(size=n_rows)
    return pd.DataFrame(
        {
            "x": x.round(2),
            "y": (x + random.standard_t(2, n_rows)).round(1),
            "k": np.array(list("abc"), dtype=object)[random.integers(0, 3, n_rows)],
            "b": np.where(x > random.normal(size=n_rows), "ja", "nein"),
        }
    )


SCHEMA = infer_schema(_table(1_000, np.random.default_rng(0))).schema


def _attacks(seed: int) -> list[dict[str, Any]]:
    """Of members, unseen, reference and drawn rows that are all independent of each other."""
    random = np.random.default_rng([seed, 17])
    members, unseen, reference, drawn = (_table(n, random) for n in (_N, _N, 60, 150))
    rows = ReportRows(SCHEMA, members, reference, unseen, drawn, True, True)
    scores = {"likelihood": random.normal(size=2 * _N)}
    part = privacy_part(rows, scores, _N, mismatch=None, seed=seed)
    return list(part.tables["attacks"])


@pytest.fixture(scope="module")
def found() -> list[list[dict[str, Any]]]:
    return [_attacks(seed) for seed in range(TABLES)]


@pytest.mark.slow
def test_uncorrected_intervals_cover_chance(found: list[list[dict[str, Any]]]) -> None:
    covered: dict[str, list[bool]] = defaultdict(list)
    for attacks in found:
        for attack in attacks:
            low, high = attack["interval_95"]
            covered[attack["name"]].append(low <= 0.5 <= high)
    assert np.mean([hit for hits in covered.values() for hit in hits]) >= 0.90
    shares = {name: float(np.mean(hits)) for name, hits in covered.items()}
    print({name: f"{share:.1%}" for name, share in shares.items()})
    if TABLES >= 200:
        assert min(shares.values()) >= 0.90, shares


@pytest.mark.slow
def test_alarms_are_as_rare_as_the_corrected_level_says(
    found: list[list[dict[str, Any]]],
) -> None:
    alarms = [any(attack["verdict"] != "green" for attack in attacks) for attacks in found]
    assert sum(alarms) <= 0.05 * TABLES + 2 * (0.05 * 0.95 * TABLES) ** 0.5
