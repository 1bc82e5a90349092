"""The law of total covariance: parts of known groups, and groups of models."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from gcvae import Synthesizer
from gcvae.dependence.latent_groups import draw_groups
from gcvae.numerics.generators import generator_for
from gcvae.numerics.kendall import normal_scores
from gcvae.numerics.total_covariance import covariance_parts
from gcvae.sampling.constrained import Acceptance, ConstrainedModel
from gcvae.sampling.hard_rules import HardRules

QUICK = {"max_steps": 60, "evaluate_every_steps": 30}


def known_groups(m: int = 40_000, n: int = 3) -> np.ndarray:
    """Two columns of variance 2: covariance 0.5 within and -0.8 between. Shape: (m, n, 2)."""
    random = np.random.default_rng(0)
    between = random.multivariate_normal([0, 0], [[1, -0.8], [-0.8, 1]], m)
    within = random.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], (m, n))
    return between[:, None] + within


def test_parts_of_known_groups_are_found_within_their_standard_errors() -> None:
    parts = covariance_parts(known_groups())
    assert parts.within[0, 1] == pytest.approx(0.25, abs=4.0 * parts.within_error[0, 1])
    assert parts.between[0, 1] == pytest.approx(-0.4, abs=4.0 * parts.between_error[0, 1])
    assert parts.within[0, 0] == pytest.approx(0.5, abs=0.02)
    assert 0.0 < parts.between_error[0, 1] < 0.01


def test_the_standard_error_is_the_spread_over_repetitions() -> None:
    whole = known_groups(20_000)
    parts = [covariance_parts(some) for some in np.split(whole, 100)]
    told = np.mean([part.between_error[0, 1] for part in parts])
    seen = np.std([part.between[0, 1] for part in parts])
    assert told == pytest.approx(seen, rel=0.3)


def test_the_parts_add_up_to_the_correlation_without_remainder() -> None:
    scores = known_groups(500, 4)
    parts = covariance_parts(scores)
    whole = np.corrcoef(scores.reshape(-1, 2).T)
    np.testing.assert_allclose(parts.within + parts.between, whole, atol=1e-12)


def test_a_column_with_one_value_has_no_parts() -> None:
    scores = known_groups(50)
    scores[..., 1] = 0.0
    parts = covariance_parts(scores)
    assert np.isnan(parts.within[0, 1])
    assert np.isfinite(parts.within[0, 0])


def table(n: int = 400) -> pd.DataFrame:
    """Two numbers, a level and blanks that follow one hidden cause."""
    random = np.random.default_rng(1)
    cause = random.normal(size=n)
    frame = pd.DataFrame(
        {
            "x": (cause + 0.5 * random.normal(size=n)).round(3),
            "y": (cause + 0.5 * random.normal(size=n)).round(3),
            "g": np.where(cause + random.normal(size=n) > 0, "up", "down"),
        }
    )
    frame.loc[::17, "y"] = np.nan
    return frame


@pytest.fixture(scope="module", params=["fast", "gcvae", "paper-vae"])
def fitted(request: pytest.FixtureRequest) -> Synthesizer:
    return Synthesizer.fit(table(), preset=request.param, settings=QUICK)


def test_within_and_between_add_up_to_the_models_own_correlation(fitted: Synthesizer) -> None:
    """Of other rows of the model: the sum is no identity here."""
    within, between = (fitted.dependencies(kind, seed=5) for kind in ("within", "between"))
    rows = fitted.sample(20_000, seed=6)
    cells = torch.from_numpy(
        np.stack([pd.factorize(rows[name].fillna(-99), sort=True)[0] for name in ("x", "y")], 1)
    )
    correlation = np.corrcoef(normal_scores(cells).T)[0, 1]
    found = within.tau[0, 1] + between.tau[0, 1]
    assert found == pytest.approx(correlation, abs=0.04)
    assert within.standard_error is not None
    assert within.standard_error[0, 1] < 0.05
    np.testing.assert_allclose(np.diag(within.tau + between.tau), 1.0, atol=1e-9)


def test_without_a_copula_and_a_refinement_all_dependence_is_between() -> None:
    plain = Synthesizer.fit(
        table(), preset="paper-vae", settings={"max_steps": 1500, "evaluate_every_steps": 100}
    )
    within, between = plain.dependencies("within"), plain.dependencies("between")
    assert within.standard_error is not None
    assert abs(within.tau[0, 1]) < 4.0 * within.standard_error[0, 1]
    assert between.tau[0, 1] > 0.3
    assert "no copula" in " ".join(plain.dependencies("expected").notes)


def test_groups_under_hard_rules_satisfy_them_and_are_of_the_sampled_model() -> None:
    numbers = table().dropna().query("x < y")
    given = {"rules": [{"rule": "not (x > y)", "keep": "hard"}], "find_rules": True}
    fitted = Synthesizer.fit(numbers, schema=given, settings=QUICK)
    share = fitted.training_record["hard_rule_acceptance"]["share"]
    assert share < 0.95
    model = ConstrainedModel(
        fitted.model,
        fitted.codec,
        HardRules.fit(numbers, fitted.schema),
        Acceptance(100, int(100 * share), (int(100 * share),)),
    )
    groups = draw_groups(model, 1_500, 3, generator_for(0, "groups"))
    rows = fitted.codec.decode(groups.rows)
    assert len(rows) == 3 * (1_500 - groups.n_incomplete)
    assert (rows["x"] <= rows["y"]).all()
    sampled = fitted.sample(4_500, seed=9)
    for name in ("x", "y"):
        error = np.sqrt(2.0 * sampled[name].var() / 1_500)
        assert rows[name].mean() == pytest.approx(sampled[name].mean(), abs=4.0 * error)
