"""The known tables have the densities that they say, and a short run of the comparison agrees."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from benchmarks.known_truth.scores import agreement
from benchmarks.known_truth.tables import IS_CONTINUOUS, ONE_COPULA, TABLES, numbers


def test_the_density_is_the_marginal_times_a_rectangle_of_the_conditional_normal() -> None:
    """Of scipy's multivariate normal: the discrete cells given the continuous ones."""
    [component] = ONE_COPULA.components
    frame = ONE_COPULA.draw(3, 0)
    x = numbers(frame)
    psi = np.sqrt(1.0 + component.loadings**2)
    direction = component.loadings / psi
    correlation = np.outer(direction, direction)
    np.fill_diagonal(correlation, 1.0)
    g, h = np.flatnonzero(IS_CONTINUOUS), np.flatnonzero(~IS_CONTINUOUS)
    of_points = correlation[np.ix_(g, g)]
    slope = correlation[np.ix_(h, g)] @ np.linalg.inv(of_points)
    rest = correlation[np.ix_(h, h)] - slope @ correlation[np.ix_(g, h)]
    for row, truth in zip(x, ONE_COPULA.log_density(frame), strict=True):
        cdf = [component.marginals[j].cdf(row[j]) for j in range(8)]
        q = ndtri([cdf[j] for j in g])
        log_c = stats.multivariate_normal(cov=of_points).logpdf(q) - stats.norm.logpdf(q).sum()
        log_points = sum(component.marginals[j].logpdf(row[j]) for j in g) + log_c
        high = ndtri([cdf[j] for j in h])
        low = ndtri([component.marginals[j].cdf(row[j] - 1.0) for j in h])
        rectangle = stats.multivariate_normal(slope @ q, rest, maxpts=200_000)
        mass = rectangle.cdf(high, lower_limit=np.maximum(low, -12.0))
        assert truth == pytest.approx(log_points + np.log(mass), abs=0.02)


@pytest.mark.parametrize("name", list(TABLES))
def test_scores_of_a_small_model_agree_with_the_truth(name: str) -> None:
    """A thirtieth of the rows and a third of the passes: the gap is that of the small table."""
    found = agreement(
        TABLES[name],
        rows=1_500,
        fresh_rows=300,
        preset="fast",
        settings={},
        draws=20,
        seed=0,
    )
    assert -1.0 < found.mean_score - found.mean_truth < 3.0 * found.gap_error
    assert found.rank_correlation > 0.6
    assert found.mean_standard_error < 0.2
