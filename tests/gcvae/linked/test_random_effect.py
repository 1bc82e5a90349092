"""The random effect: components of variance that are known, and the posterior by brute force."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gcvae.linked.random_effect import RandomEffect, share_between


def _children(n_parents: int, n_each: int, share: float) -> tuple[pd.DataFrame, np.ndarray]:
    """Children of which a share of the variance of x lies between parents; y is noise."""
    rng = np.random.default_rng(0)
    parents = np.repeat(np.arange(n_parents), n_each)
    between = rng.normal(size=n_parents)[parents] * share**0.5
    x = between + rng.normal(size=len(parents)) * (1 - share) ** 0.5
    frame = pd.DataFrame({"x": x, "y": rng.choice(["a", "b", "c"], len(parents))})
    return frame, parents


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_the_share_between_parents_is_found(share: float) -> None:
    children, parents = _children(800, 6, share)
    effect = RandomEffect.fit(children, parents, seed=0)
    assert effect.n_directions >= 1
    assert abs(effect.variances[0] - share) < 0.08
    assert abs(share_between(children[["x"]], parents) - share) < 0.08


def test_strangers_have_no_effect() -> None:
    children, parents = _children(300, 5, 0.0)
    assert RandomEffect.fit(children, parents, seed=0).n_directions <= 1


def test_the_posterior_is_that_of_a_normal_mean() -> None:
    children, parents = _children(400, 4, 0.6)
    effect = RandomEffect.fit(children[["x"]], parents, seed=0)
    mean, root = effect.posterior(children[["x"]], parents, 401)
    prior, within = effect.variances[0], effect.within[0, 0]
    phi = effect.features[0].values(children["x"])[:, 0] - effect.mean[0]
    expected = prior / (prior + within / 4) * phi.reshape(400, 4).mean(axis=1)
    np.testing.assert_allclose(mean[:400, 0], expected * effect.directions[0, 0], rtol=1e-6)
    np.testing.assert_allclose(root[:400, 0, 0] ** 2, 1 / (1 / prior + 4 / within), rtol=1e-6)
    assert (mean[400, 0], round(root[400, 0, 0] ** 2, 6)) == (0.0, round(prior, 6))


def test_an_effect_is_the_same_after_its_document() -> None:
    children, parents = _children(100, 4, 0.5)
    effect = RandomEffect.fit(children, parents, seed=0)
    again = RandomEffect.from_json(effect.to_json())
    noise = np.random.default_rng(1).normal(size=(100, effect.n_directions))
    np.testing.assert_array_equal(
        effect.draw(children, parents, 100, noise), again.draw(children, parents, 100, noise)
    )
