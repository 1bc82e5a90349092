"""Every kind of map of a fitted model, and where each says what it is of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from gcvae import Synthesizer
from gcvae.cells.values import parse_table
from gcvae.dependence.notes import KIND_NOTES, MAPS_OF_MODEL
from gcvae.errors import InputError, SettingError, TableError, UnknownColumnError
from gcvae.model.decoders import CopulaDecoder
from gcvae.model.posterior import posterior_draws
from gcvae.numerics.row_noise import RowNoise
from tests.wordings import refuses

QUICK = {"max_steps": 120, "evaluate_every_steps": 60}


def table(n: int = 300) -> pd.DataFrame:
    """A real column with many zeros amid, a whole one with blanks, a nominal one, a boolean."""
    random = np.random.default_rng(0)
    cause = random.normal(size=n)
    frame = pd.DataFrame(
        {
            "change": np.where(random.random(n) < 0.3, 0.0, cause + random.normal(size=n)).round(3),
            "size": (50.0 + 10.0 * cause).round(),
            "place": np.array(["c", "a", "b"])[np.digitize(cause, [-0.5, 0.5])],
            "open": np.where(random.random(n) < 0.5, "yes", "no"),
        }
    )
    frame.loc[::25, "size"] = np.nan
    return frame


@pytest.fixture(scope="module")
def fitted(few_rows: None) -> Synthesizer:
    return Synthesizer.fit(table(), preset="fast", settings=QUICK)


ROW = {"change": 0.5, "size": 55, "place": "a", "open": True}


@pytest.mark.parametrize("kind", MAPS_OF_MODEL)
def test_a_map_says_what_it_means_and_is_the_same_for_the_same_seed(
    fitted: Synthesizer, kind: str
) -> None:
    map_ = fitted.dependencies(kind, seed=3)
    assert map_.notes[: len(KIND_NOTES[kind])] == KIND_NOTES[kind]
    assert map_.to_json() == fitted.dependencies(kind, seed=3).to_json()
    np.testing.assert_array_equal(map_.tau, map_.tau.T)
    if kind != "difference":
        assert any("correspondence analysis" in note for note in map_.notes)
    if kind not in ("data",):
        assert map_.to_json() != fitted.dependencies(kind, seed=4).to_json()


def test_the_order_of_levels_is_the_learned_one(fitted: Synthesizer) -> None:
    """Along the cause the levels are c, a, b: by the alphabet most of the dependence is lost."""
    map_ = fitted.dependencies("data")
    assert abs(map_.tau[1, 2]) > 0.6
    assert map_.unsigned[1, 2] > 0.6


def test_a_difference_is_total_less_data(fitted: Synthesizer) -> None:
    total, data = fitted.dependencies("total", seed=1), fitted.dependencies("data")
    np.testing.assert_array_equal(
        fitted.dependencies("difference", seed=1).tau, total.tau - data.tau
    )


def test_a_local_map_is_that_of_the_copula_at_its_z(fitted: Synthesizer) -> None:
    z = [0.3] * fitted.model.prior.d_latent
    map_ = fitted.dependencies("local", z=z)
    with torch.no_grad():
        rho = fitted.model.conditional(torch.tensor([z])).correlation()[0].double().numpy()
    np.testing.assert_allclose(map_.tau, 2.0 / np.pi * np.arcsin(rho), atol=1e-6)
    assert map_.spread is not None
    assert map_.spread.max() < 1e-3


def test_a_local_map_of_a_row_takes_blanks_as_not_known(fitted: Synthesizer) -> None:
    whole = fitted.dependencies("local", row=ROW)
    assert whole.kind == "local"
    assert any("effective sample size" in note for note in whole.notes)
    known = {"change": 0.5}
    by_none = fitted.dependencies("local", row=known | {"size": None})
    assert by_none.to_json() == fitted.dependencies("local", row=known).to_json()
    assert not np.array_equal(by_none.tau, whole.tau)


def test_posterior_draws_have_the_posteriors_mean() -> None:
    """A model whose decoder ignores z: the posterior is the prior, whatever the encoder says."""
    fitted = Synthesizer.fit(table(), preset="paper-vae", settings={"max_steps": 5})
    decoder, encoder = fitted.model.decoder, fitted.model.encoder
    assert isinstance(decoder, CopulaDecoder)
    torch.nn.init.zeros_(decoder.trunk[0].weight)
    for head, bias in ((encoder.eta, 0.4), (encoder.log_tau, 0.3)):
        torch.nn.init.zeros_(head.weight)
        torch.nn.init.constant_(head.bias, bias)
    row = fitted.codec.encode(parse_table(table().dropna().head(1), fitted.schema))
    z, weight = posterior_draws(
        fitted.model, row, 40_000, ["x"] * 4, RowNoise.numbered(0, "p", [0])
    )
    assert float(weight.sum()) == pytest.approx(1.0)
    mean = (weight[:, None] * z).sum(0)
    variance = (weight[:, None] * z.square()).sum(0) - mean.square()
    assert mean.numpy() == pytest.approx(0.0, abs=0.05)
    assert variance.numpy() == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda s: s.dependencies("best"), SettingError),
        (lambda s: s.dependencies("local"), SettingError),
        (lambda s: s.dependencies("local", row=ROW, z=[0.0]), SettingError),
        (lambda s: s.dependencies("total", row=ROW), SettingError),
        (lambda s: s.dependencies("local", z=[0.0]), InputError),
        (lambda s: s.dependencies("local", z=[np.nan] * 8), InputError),
        (lambda s: s.dependencies("local", row={"hp": 1}), UnknownColumnError),
        (lambda s: s.dependencies("local", row={"size": "big"}), TableError),
        (lambda s: s.dependencies("local", row={"place": "moon"}), TableError),
        (lambda s: s.dependencies("local", row={"size": 1e9}), TableError),
        (lambda s: s.dependencies("local", row={"change": -50}), TableError),
        (lambda s: s.manifold(), InputError),
    ],
)  # fmt: skip
def test_what_can_not_be_mapped_is_refused_with_what_would_be_right(
    fitted: Synthesizer, call: Any, error: type[Exception]
) -> None:
    with refuses(error):
        call(fitted)


def test_encodings_are_the_encoders_line_by_line(fitted: Synthesizer) -> None:
    found = fitted.encode(table())
    assert list(found.columns) == [
        *(f"mean_{k}" for k in range(1, 9)),
        *(f"standard_deviation_{k}" for k in range(1, 9)),
    ]
    assert len(found) == 300
    rows = fitted.codec.encode(parse_table(table(), fitted.schema), blanks_unknown=True)
    with torch.no_grad():
        eta, log_tau = fitted.model.encoder(rows)
    np.testing.assert_allclose(found.to_numpy()[:, :8], eta.double().numpy())
    np.testing.assert_allclose(found.to_numpy()[:, 8:], log_tau.exp().double().numpy())
    assert list(fitted.encode(table().head(0)).columns) == list(found.columns)
