"""The page of speed is its result, and the limit counts each weight of a drawn row once."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.speed.__main__ import RESULT
from benchmarks.speed.limits import products, products_step
from benchmarks.speed.page import page
from gcvae.model.autoregressive_decoder import AutoregressiveDecoder
from tests.gcvae.model.test_autoregressive import MIXED, autoregressive_model

_ROOT = Path(__file__).parents[3]


def test_the_page_is_made_of_the_last_result() -> None:
    results = _ROOT / "benchmarks" / "results"
    document = json.loads(sorted(results.glob(RESULT))[-1].read_text())
    assert page(document) == (_ROOT / "docs" / "performance.md").read_text()


def test_the_limit_multiplies_each_weight_of_a_drawn_row_once() -> None:
    model = autoregressive_model(MIXED)
    assert isinstance(model.decoder, AutoregressiveDecoder)
    beside_products = {"embedding", "slopes", "loadings", "start", "shifts"}
    weights = sum(
        parameter.numel()
        for name, parameter in model.decoder.named_parameters()
        if parameter.dim() > 1
        and "bias" not in name
        and beside_products.isdisjoint(name.split("."))
    )
    counted = sum(n_in * n_out * times for _, (n_in, n_out), times in products(model))
    assert counted == weights
    for by_onednn in (False, True):
        products_step(model, by_onednn=by_onednn)()
