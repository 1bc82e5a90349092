"""Known answers of low false positive rates, and of the bound on epsilon that they give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from gcvae.arrays import Numbers
from gcvae.evaluation.report.findings import Finding, bound_on_epsilon, corrected
from gcvae.evaluation.report.privacy import privacy_part
from gcvae.evaluation.report.rows import ReportRows
from tests.gcvae.evaluation.report.test_no_leak import SCHEMA, _table
from tests.lengths import first_of


def _finding(members: Numbers, unseen: Numbers) -> Finding:
    return Finding("distance", "…", members, unseen, are_scores=True)


def _rates(finding: Finding) -> list[float | None]:
    return [one["rate"] for one in finding.to_json()["true_positive_rates"]]


def test_rates_count_members_above_the_share_of_unseen_rows() -> None:
    members, unseen = np.arange(1_000) + 500.5, np.arange(1_000.0)
    finding = _finding(members, unseen)
    assert _rates(finding) == [0.601, 0.511, 0.502]
    low, high = finding.to_json()["true_positive_rates"][1]["interval"]
    assert low == pytest.approx(beta.ppf(0.025, 511, 490))
    assert high == pytest.approx(beta.ppf(0.975, 512, 489))


def test_scores_that_tie_with_the_threshold_are_not_taken_for_members() -> None:
    scores = np.repeat([0.0, 1.0], [900, 100])
    assert _rates(_finding(scores[::-1], scores)) == [0.1, 0.0, 0.0]
    assert _rates(_finding(np.ones(1_000), np.full(1_000, -np.inf))) == [1.0, 1.0, 1.0]


def test_a_rate_of_less_than_one_row_is_not_measurable() -> None:
    tables = map(np.arange, (9, 99, 999, 1000))
    measured = [[rate is not None for rate in _rates(_finding(x, x))] for x in tables]
    assert measured == [[False] * 3, [True, False, False], [True, True, False], [True] * 3]


@pytest.mark.parametrize("epsilon", first_of(3.0, 1.0, 0.0))
def test_the_bound_stays_below_the_epsilon_of_a_laplace_mechanism(epsilon: float) -> None:
    """Laplace noise of scale 1/ε on 1 (a member) or 0 is ε-differentially private, and no less."""
    random, found = np.random.default_rng(0), []
    for _ in range(60):
        noise = random.laplace(scale=1 / epsilon if epsilon else 1.0, size=(2, 2_000))
        finding = _finding(noise[0] + bool(epsilon), noise[1])
        bound = bound_on_epsilon([finding], None)
        assert bound is not None
        assert bound["could_show"] > 5.0
        found.append(bound["at_least"])
    assert sum(bound > epsilon for bound in found) <= 0.05 * 60 + 2 * (0.05 * 0.95 * 60) ** 0.5
    assert np.mean(found) >= 0.6 * epsilon


def test_the_bound_is_the_inequality_with_its_delta() -> None:
    members, unseen = np.repeat([1.0, 0.0], [400, 600]), np.zeros(1_000)
    findings = corrected([_finding(members, unseen), replace(_finding(unseen, unseen), name="x")])
    bound = bound_on_epsilon(findings, {"epsilon": 1.0, "delta": 0.01})
    assert bound is not None
    tail = 0.05 / (2 * 3) / 2
    true, false = beta.ppf(tail, 400, 601), beta.ppf(1 - tail, 2, 999)
    assert bound["at_least"] == pytest.approx(np.log((true - 0.01) / false))
    assert (bound["attack"], bound["false_positive_rate"]) == ("distance", 0.001)
    assert (bound["promised"], bound["delta"]) == (1.0, 0.01)


def _rows(planted: int, random: np.random.Generator) -> ReportRows:
    """Synthetic rows that are independent of all others but for so many copied training rows."""
    members, unseen, drawn = (
        _table(3_000, random).assign(x=random.normal(size=3_000), y=random.normal(size=3_000))
        for _ in range(3)
    )
    drawn = pd.concat([members.head(planted), drawn.iloc[planted:]], ignore_index=True)
    return ReportRows(SCHEMA, members, _table(300, random), unseen, drawn, True, True)


def test_a_planted_leak_is_found_and_breaks_a_guarantee() -> None:
    """1 % of the training rows stand among the synthetic rows."""
    rows = _rows(30, np.random.default_rng(0))
    part = privacy_part(rows, {}, 2_500, mismatch=None, seed=0)
    assert part.verdict in ("amber", "red")
    bound = part.tables["epsilon"]
    assert bound["at_least"] > 0.2
    assert bound["promised"] is None
    attacks = {found["name"]: found for found in part.tables["attacks"]}
    assert attacks["copies"]["verdict"] != "green"
    assert attacks["distance_ratio"]["true_positive_rates"][2]["interval"][0] > 0.004
    (figure,) = (f for f in part.figures if f.name == "epsilon")
    assert figure.verdict == "shown"
    private = replace(rows, guarantee={"epsilon": 0.1, "delta": 1e-6})
    part = privacy_part(private, {}, 2_500, mismatch=None, seed=0)
    assert part.verdict == "red"
    assert "the guarantee does not hold" in part.sentence
    assert part.tables["leaks"] == {"rows": "red", "model": "red"}


def test_independent_rows_prove_no_epsilon() -> None:
    part = privacy_part(_rows(0, np.random.default_rng(1)), {}, 2_500, mismatch=None, seed=0)
    assert part.tables["epsilon"]["at_least"] == 0.0
    assert part.tables["epsilon"]["attack"] is None
