"""Maps of a copula beside its known tau."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.known_truth.dependence import (
    ATOMS_RHO,
    COPULA_ALONE,
    LITTLE_USE_FOR_Z,
    atoms_amid,
    one_factor,
)
from gcvae import Synthesizer


@pytest.mark.slow
def test_a_copula_that_suffices_shows_the_true_tau_in_the_expected_map() -> None:
    frame, rho = one_factor(5_000, np.random.default_rng(0))
    fitted = Synthesizer.fit(frame, preset="gcvae", settings=LITTLE_USE_FOR_Z, seed=0)
    truth = 2.0 / np.pi * np.arcsin(rho)
    np.testing.assert_allclose(fitted.dependencies("expected").tau, truth, atol=0.05)


@pytest.fixture(scope="module")
def with_atoms() -> Synthesizer:
    frame = atoms_amid(3_000, np.random.default_rng(0))
    return Synthesizer.fit(frame, preset="paper-gcvae", settings=COPULA_ALONE, seed=0)


def test_atoms_amid_other_numbers_leave_the_true_tau_in_the_expected_map(
    with_atoms: Synthesizer,
) -> None:
    """With atoms below all other numbers it is 0.1, where the truth is 0.41."""
    truth = 2.0 / np.pi * np.arcsin(ATOMS_RHO)
    for model in (with_atoms, Synthesizer.from_bytes(with_atoms.to_bytes())):
        assert model.dependencies("expected").tau[0, 1] == pytest.approx(truth, abs=0.03)


def test_a_range_over_an_atom_of_a_loaded_model_is_what_rejection_leaves(
    with_atoms: Synthesizer,
) -> None:
    model = Synthesizer.from_bytes(with_atoms.to_bytes())
    rows = model.sample(5_000, seed=1, given={"x": {"min": 90.0, "max": 130.0}})
    assert rows["x"].between(90.0, 130.0).all()
    pool = model.sample(20_000, seed=2)
    pool = pool[pool["x"].between(90.0, 130.0)]
    for of in (lambda t: t["x"] == 98.7, lambda t: t["y"] == 94.9, lambda t: t["y"] > 105.0):
        assert of(rows).mean() == pytest.approx(of(pool).mean(), abs=0.035)
