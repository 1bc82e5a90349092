"""The decoder on a grid of a two-dimensional latent space."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

from benchmarks.known_truth.countable import COLUMNS, draw_countable
from gcvae import Synthesizer
from gcvae.errors import InputError
from gcvae.latent.grids import LevelGrid, NumberGrid
from tests.lengths import first_of
from tests.wordings import refuses

QUICK = {"max_steps": 80, "evaluate_every_steps": 40, "d_latent": 2}


def table(n: int = 300) -> pd.DataFrame:
    """Numbers, dates with blanks, and levels of two and of four kinds."""
    random = np.random.default_rng(0)
    cause = random.normal(size=n)
    frame = pd.DataFrame(
        {
            "size": (50.0 + 10.0 * cause).round(2),
            "day": pd.to_datetime("2024-01-01")
            + pd.to_timedelta((100 + 30 * cause).astype(int), "D"),
            "open": np.where(cause > 0, "yes", "no"),
            "place": np.array(["c", "a", "b", "d"])[np.digitize(cause, [-0.5, 0.5, 1.0])],
        }
    )
    frame.loc[::10, "day"] = pd.NaT
    return frame


@pytest.fixture(scope="module", params=first_of("paper-gcvae", "paper-vae-roc", "fast", "gcvae"))
def fitted(request: pytest.FixtureRequest) -> Synthesizer:
    return Synthesizer.fit(table(), preset=request.param, settings=QUICK)


def test_columns_of_rules_and_parts_are_those_of_the_table() -> None:
    model = Synthesizer.fit(
        draw_countable(1_000), preset="fast", settings=QUICK, seed=1, progress=False
    )
    deposit, fee, total, city, land = model.manifold(3).columns
    for column in (deposit, total):
        assert isinstance(column, NumberGrid)
        assert (column.low < column.high).all()
    assert isinstance(fee, LevelGrid)
    assert isinstance(land, LevelGrid)
    assert {*land.levels} == {"Austria", "Switzerland"}
    assert [column.name for column in (deposit, fee, total, city, land)] == list(COLUMNS)


def test_the_grid_is_of_quantiles_and_its_parameters_are_probabilities(
    fitted: Synthesizer,
) -> None:
    found = fitted.manifold(5)
    assert found.probability.tolist() == pytest.approx([0.1, 0.3, 0.5, 0.7, 0.9])
    assert (np.diff(found.z_1) > 0).all()
    assert (np.diff(found.z_2) > 0).all()
    if fitted.preset.startswith("paper"):
        assert found.z_1 == pytest.approx(norm.ppf(found.probability))
    size, day, is_open, place = found.columns
    assert isinstance(size, NumberGrid)
    assert isinstance(day, NumberGrid)
    assert (size.low <= size.median).all()
    assert (size.median <= size.high).all()
    assert ((day.missing > 0.0) & (day.missing < 1.0)).all()
    assert isinstance(is_open, LevelGrid)
    assert isinstance(place, LevelGrid)
    assert is_open.levels == ("no", "yes")
    assert {*place.levels} == {*"abcd"}
    assert place.probability.sum(-1) == pytest.approx(1.0)
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize("fitted", first_of("paper-gcvae", "paper-vae-roc", "gcvae"), indirect=True)
def test_a_pure_models_marginals_are_those_of_the_rows_that_it_draws(fitted: Synthesizer) -> None:
    """64 quantiles of each marginal against 4,000 rows at the same z."""
    found = fitted.manifold(3)
    z = torch.tensor([[found.z_1[2], found.z_2[0]]], dtype=torch.float32).expand(4_000, 2)
    with torch.no_grad():
        codes, values = fitted.model.conditional(z).sample(torch.Generator().manual_seed(0))
    from gcvae.codec.encoded_table import EncodedTable

    rows = fitted.codec.decode(EncodedTable(codes, values, torch.ones_like(codes).bool()))
    size, day, is_open, _ = found.columns
    assert isinstance(size, NumberGrid)
    assert isinstance(day, NumberGrid)
    assert isinstance(is_open, LevelGrid)
    for name, p in (("low", 0.1), ("median", 0.5), ("high", 0.9)):
        below = (rows["size"] <= getattr(size, name)[0, 2]).mean()
        assert below == pytest.approx(p, abs=0.04)
    assert rows["day"].isna().mean() == pytest.approx(day.missing[0, 2], abs=0.03)
    assert is_open.levels[1] == "yes"
    share = rows["open"].astype(bool).mean()
    assert share == pytest.approx(is_open.probability[0, 2, 1], abs=0.03)


def test_a_manifold_is_drawn_alike_each_time(fitted: Synthesizer) -> None:
    found = fitted.manifold(4)
    assert found.picture("png").startswith(b"\x89PNG")
    assert found.picture("svg") == found.picture("svg")


def test_too_few_or_too_many_steps_are_refused(fitted: Synthesizer) -> None:
    for steps in (1, 51):
        with refuses(InputError, "?steps"):
            fitted.manifold(steps)
