"""Sums of which the whole and one term are known, whichever term is drawn last."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer
from gcvae.errors import ConditionError


def bills(n: int = 2_000) -> pd.DataFrame:
    """Two terms in cents and their sum, in that order, beside a level."""
    random = np.random.default_rng(0)
    a, b = random.gamma(2.0, 5.0, n).round(2), random.gamma(2.0, 5.0, n).round(2)
    kind = random.choice(list("xyz"), n)
    return pd.DataFrame({"a": a, "b": b, "total": (a + b).round(2), "类别": kind})


@pytest.fixture(scope="module")
def model() -> Synthesizer:
    fitted = Synthesizer.fit(bills(), seed=0, settings={"max_steps": 100}, progress=False)
    return Synthesizer.from_bytes(fitted.to_bytes())


@pytest.mark.parametrize(("term", "other"), [("a", "b"), ("b", "a")])
def test_a_condition_on_the_sum_and_a_term_gives_the_other(
    model: Synthesizer, term: str, other: str
) -> None:
    rows = model.sample(100, seed=1, given={"total": 30.0, term: 9.99})
    assert (rows[other] == 20.01).all()
    assert (rows["total"] == 30.0).all()


def test_known_cells_that_make_no_sum_are_refused_by_row(model: Synthesizer) -> None:
    known = pd.DataFrame({"total": [30.0, 5.0], "b": [29.0, 9.99]})
    with pytest.raises(ConditionError, match=r"row 2: .*known cells.*total = a \+ b"):
        model.sample(given_rows=known, seed=1)
    assert model.sample(given_rows=known[:1], seed=1)["a"].tolist() == [1.0]
