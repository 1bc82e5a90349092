"""Numbers that come again where few things are counted, and are free where many are.

A rate is a share of a few pages - so one of a few fractions - or of so many that no two are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer
from gcvae.codec.quantile_codec import QuantileCodec

N = 3_000
SETTINGS = {"max_steps": 250}


def visits(seed: int = 0) -> pd.DataFrame:
    """Pages of a visit, the share of them that were left, and a device, in that order or another.

    Few pages make few shares, in thirds to fifteenths; the shares of many are of six decimals.
    """
    random = np.random.default_rng(seed)
    n_pages = np.where(
        random.random(N) < 0.6, random.integers(2, 13, N), random.integers(40, 90, N)
    )
    left = random.binomial(n_pages, 0.25) / n_pages
    noise = random.normal(0.0, 0.02, N)
    rate = np.where(n_pages < 20, left, np.abs(left + noise)).round(6)
    device = np.where(random.random(N) < 0.3 + 0.4 * (n_pages > 20), "Telefon", "デスクトップ")
    return pd.DataFrame({"Quote": rate, "device": device, "pages": n_pages})


@pytest.fixture(scope="module")
def model() -> Synthesizer:
    fitted = Synthesizer.fit(visits(), seed=0, settings=SETTINGS, progress=False)
    return Synthesizer.from_bytes(fitted.to_bytes())


def codec_of(model: Synthesizer) -> QuantileCodec:
    codec = model.codec.column_codec("Quote")
    assert isinstance(codec, QuantileCodec)
    return codec


def share_known(rows: pd.DataFrame, many: bool) -> float:
    """Share of the rows whose rate five rows of the table have."""
    counts = visits()["Quote"].value_counts()
    rows = rows[(rows["pages"] > 20) == many]
    return float(rows["Quote"].isin(counts.index[counts >= 5]).mean())


def test_rates_that_come_again_come_back_to_the_digit(model: Synthesizer) -> None:
    codes, values = codec_of(model).encode(visits()["Quote"])
    back = codec_of(model).decode(codes.astype(np.int64), values)
    np.testing.assert_array_equal(back.to_numpy(), visits()["Quote"])


def test_rates_come_again_where_they_do_in_the_table(model: Synthesizer) -> None:
    rows = model.sample(6_000, seed=1)
    for many in (False, True):
        assert share_known(rows, many) == pytest.approx(share_known(visits(), many), abs=0.08)


@pytest.mark.parametrize("wanted", [{"min": 0.21, "max": 0.26}, [0.25, 0.333333]])
def test_conditions_draw_only_what_they_ask_for(model: Synthesizer, wanted: Any) -> None:
    rows = model.sample(1_000, seed=2, given={"Quote": wanted})["Quote"]
    is_inside = rows.between(0.21, 0.26) if isinstance(wanted, dict) else rows.isin(wanted)
    assert is_inside.all()


def test_a_conditions_probability_is_its_share_of_the_rows(model: Synthesizer) -> None:
    wanted = {"min": 0.21, "max": 0.26}
    told = model.sample(10, seed=3, given={"Quote": wanted}).attrs["probability"]
    rows = model.sample(20_000, seed=3)["Quote"]
    assert told == pytest.approx(rows.between(0.21, 0.26).mean(), abs=0.012)


def test_known_rates_stay_and_blank_ones_are_drawn(model: Synthesizer) -> None:
    known = pd.DataFrame({"pages": [60, 6], "Quote": [None, 0.333333], "device": ["Telefon", None]})
    rows = model.sample(given_rows=known, seed=4)
    assert rows["Quote"].iloc[1] == 0.333333
    assert rows["Quote"].notna().all()


def test_a_number_with_more_digits_than_its_column_is_the_one_that_is_written_so(
    model: Synthesizer,
) -> None:
    rates = [1 / 3, 2 / 3, 1 / 7, 0.5000001, 0.25]
    rows = model.sample(given_rows=pd.DataFrame({"Quote": rates * 20}), seed=5)
    assert rows["Quote"].tolist() == [0.333333, 0.666667, 0.142857, 0.5, 0.25] * 20
    assert (rows["pages"] < 20).mean() > 0.95
    cells = pd.DataFrame({"pages": [3, 3], "Quote": [1 / 3, 0.333333], "device": ["Telefon"] * 2})
    unrounded, written = model.log_likelihood(cells, draws=256)["log_likelihood"]
    assert unrounded == pytest.approx(written, abs=0.3)
