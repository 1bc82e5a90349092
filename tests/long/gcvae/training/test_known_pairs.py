"""What never stands together in a table hardly does so in drawn rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer
from gcvae.model.level_functions import LevelFunction

N = 3_000
ROUTES = {
    airline: [f"城{(3 * i + k) % 20}" for k in range(5)] for i, airline in enumerate("ABCDEF")
}
SHORT = {"max_steps": 60, "batch_size": 256}


def flights(seed: int) -> pd.DataFrame:
    """Airlines that fly to five of twenty towns each, and tickets of which unpaid ones cost 0."""
    random = np.random.default_rng(seed)
    airline = random.choice(list(ROUTES), N)
    town = [random.choice(ROUTES[a]) for a in airline]
    status = random.choice(["paid", "part", "open"], N, p=[0.5, 0.2, 0.3])
    paid = np.where(status == "open", 0.0, np.round(random.lognormal(4, 1, N), 2))
    return pd.DataFrame({"paid": paid, "town": town, "status": status, "airline": airline})


def unseen(rows: pd.DataFrame) -> tuple[float, float]:
    """Shares of rows with a town where the airline does not fly, and of open ones that are paid."""
    flown = [town in ROUTES[airline] for airline, town in zip(rows.airline, rows.town, strict=True)]
    is_open = rows.status == "open"
    return 1.0 - float(np.mean(flown)), float((rows.paid[is_open] != 0).mean())


def _town_without(airline: str) -> str:
    """A town where others fly, and the airline does not."""
    towns = {town for towns in ROUTES.values() for town in towns}
    return min(towns - set(ROUTES[airline]))


def test_drawn_rows_have_the_pairs_of_the_table_also_of_a_saved_model(tmp_path: Path) -> None:
    free = Synthesizer.fit(flights(0), seed=0, settings=SHORT | {"rules": "none"})
    assert unseen(free.sample(N, 1))[0] > 0.006, "the network alone draws others"
    Synthesizer.fit(flights(0), seed=0, settings=SHORT).save(tmp_path / "m.gcvae")
    kept = Synthesizer.load(tmp_path / "m.gcvae")
    assert max(unseen(kept.sample(N, 1))) <= 0.001
    found = {frozenset(relation["columns"]) for relation in kept.training_record["known_pairs"]}
    assert frozenset({"airline", "town"}) in found
    away = kept.sample(200, 2, given={"airline": "A"})
    assert set(away.town) <= set(ROUTES["A"])


def test_a_pair_that_no_row_has_is_possible_and_unlikely() -> None:
    model = Synthesizer.fit(flights(0), seed=0, settings=SHORT)
    rows = flights(1)[:40]
    elsewhere = rows.assign(town=[_town_without(airline) for airline in rows.airline])
    likely, unlikely = (model.log_likelihood(r)["log_likelihood"] for r in (rows, elsewhere))
    assert np.isfinite(unlikely).all()
    assert (likely - unlikely).median() > 4.0


def test_independent_columns_have_no_relations() -> None:
    random = np.random.default_rng(3)
    table = pd.DataFrame({name: random.choice(list("abcdefgh"), 2_000) for name in "uvwx"})
    model = Synthesizer.fit(table, seed=0, settings=SHORT)
    assert model.training_record["known_pairs"] == []


def test_other_pairs_have_the_share_that_pairs_of_one_row_and_two_let_expect() -> None:
    rows = np.array([[0, 0]] * 10 + [[0, 1]] * 2 + [[0, 2]] + [[1, 2]] * 7)
    relation = LevelFunction.of_pairs((4, 2), rows)
    assert relation.parents == (4,)
    assert relation.column == 2
    assert relation.pairs.tolist() == [[0, 0], [0, 1], [1, 2]]
    assert relation.exceptions == pytest.approx((1 + 2 + 0.5) / 21)


def test_nothing_is_said_of_a_code_that_mostly_has_pairs_of_its_own() -> None:
    rows = np.array([[0, 0]] * 10 + [[1, k] for k in range(6)])
    assert LevelFunction.of_pairs((0, 1), rows).pairs.tolist() == [[0, 0]]
