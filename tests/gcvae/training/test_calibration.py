"""Calibration: margins of models without a refinement, and what held-out rows believe of one."""

from __future__ import annotations

import pytest
import torch

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.autoregressive_decoder import AutoregressiveDecoder
from gcvae.model.decoders import GenerativeModel
from gcvae.numerics.generators import generator_for
from gcvae.training.calibration import calibrate, shrink
from tests.gcvae.models import levels, number, random_model

SHARES = ([0.9, 0.1], [0.2, 0.3, 0.5], [0.7, 0.1, 0.1, 0.1])


@pytest.mark.parametrize("preset", ["gcvae", "paper-vae-roc"])
def test_calibration_gives_a_model_of_one_step_the_margins_of_the_table(preset: str) -> None:
    model = random_model(preset, [levels(2), levels(3), number(), levels(4)], strength=2.0).float()
    generator = generator_for(0, "codes")
    drawn = [torch.multinomial(torch.tensor(s), 5000, True, generator=generator) for s in SHARES]
    codes = torch.stack([*drawn[:2], torch.zeros(5000, dtype=torch.long), drawn[2]], 1)
    calibrate(model, [torch.bincount(column) for column in codes.T], seed=0)
    with torch.no_grad():
        sampled, _ = model.sample(50_000, generator_for(1, "draws"))
    for j in (0, 1, 3):
        wanted, present = (torch.bincount(c[:, j].long()) / len(c) for c in (codes, sampled))
        torch.testing.assert_close(present, wanted, atol=0.01, rtol=0.0)


HELD_OUT = torch.arange(3_000)


def _chain() -> tuple[GenerativeModel, EncodedTable]:
    """Three columns of levels that follow from each other and not from z, and rows of them."""
    model = random_model("default", [levels(3), levels(4), levels(5)], seed=1).float()
    assert isinstance(model.decoder, AutoregressiveDecoder)
    with torch.no_grad():
        model.decoder.refinement.read.weight.zero_()
        for weights in model.decoder.refinement.to_logits:
            weights.normal_(generator=generator_for(2, "weights"), std=1.5)
        for group in model.marginals.code_groups:
            group.logits.weight.zero_()
        codes, values = model.sample(6_000, generator_for(1, "rows"))
    return model, EncodedTable(codes, values, torch.ones_like(codes, dtype=torch.bool))


def _multiply(model: GenerativeModel, j: int, by: float) -> None:
    assert isinstance(model.decoder, AutoregressiveDecoder)
    network = model.decoder.refinement
    g, at = network.group_of(j)
    assert g is not None
    with torch.no_grad():
        network.to_logits[g][at] *= by
        network.shifts[g][at] *= by


def _log_likelihood(model: GenerativeModel, rows: EncodedTable) -> float:
    with torch.no_grad():
        return float(model.conditional(torch.zeros(len(rows), 2)).log_prob(rows, None).mean())


def test_what_is_believed_too_much_is_taken_back() -> None:
    model, rows = _chain()
    true = _log_likelihood(model, rows)
    _multiply(model, 1, 2.5)
    spoilt = _log_likelihood(model, rows)
    assert spoilt < true - 0.1, "or there is nothing to take back"
    assert shrink(model, rows, HELD_OUT, seed=0) == [1.0, 0.4, 1.0]
    assert _log_likelihood(model, rows) == pytest.approx(true, abs=1e-4)


def test_what_is_right_or_believed_too_little_stays() -> None:
    model, rows = _chain()
    assert shrink(model, rows, HELD_OUT, seed=0) == [1.0, 1.0, 1.0]
    _multiply(model, 2, 0.5)
    before = [parameter.clone() for parameter in model.decoder.parameters()]
    assert shrink(model, rows, HELD_OUT, seed=0) == [1.0, 1.0, 1.0]
    after = model.decoder.parameters()
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_nothing_is_taken_back_without_rows_that_training_did_not_see() -> None:
    model, rows = _chain()
    _multiply(model, 1, 2.5)
    assert shrink(model, rows, torch.arange(len(rows)), seed=0) == [1.0, 1.0, 1.0]
    assert shrink(model, rows, torch.arange(50), seed=0) == [1.0, 1.0, 1.0]
