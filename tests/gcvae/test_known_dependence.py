"""Maps beside a known truth: what is in the copula shows in it, what runs through z between."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.known_dependence import LITTLE_USE_FOR_Z, hidden_cause, one_factor
from gcvae import Synthesizer

OTHERS = ~np.eye(5, dtype=bool)


@pytest.mark.slow
def test_a_copula_that_suffices_shows_the_true_tau_in_the_expected_map() -> None:
    frame, rho = one_factor(5_000, np.random.default_rng(0))
    fitted = Synthesizer.fit(frame, preset="gcvae", settings=LITTLE_USE_FOR_Z, seed=0)
    truth = 2.0 / np.pi * np.arcsin(rho)
    np.testing.assert_allclose(fitted.dependencies("expected").tau, truth, atol=0.05)
    assert np.abs(fitted.dependencies("between").tau[OTHERS]).max() < 0.05


@pytest.mark.slow
def test_a_hidden_cause_shows_in_what_is_between() -> None:
    settings = {"d_latent": 2, "d_hidden": 48, "max_steps": 400, "prior": "mixture"}
    frame = hidden_cause(2_000, np.random.default_rng(0))
    fitted = Synthesizer.fit(frame, preset="gcvae", settings=settings, seed=0)
    within, between = (
        np.abs(fitted.dependencies(kind).tau[OTHERS]).mean() for kind in ("within", "between")
    )
    assert between > 0.3
    assert within < 0.05
