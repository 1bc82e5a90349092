"""The benchmark of imputation: its measures, its baselines, its page."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.imputation.baselines import iterative, most_frequent
from benchmarks.imputation.measures import BlankedTable, blank, judge, mean_of, point_estimate
from benchmarks.imputation.page import render_page
from gcvae import Synthesizer, infer_schema, parse_table


def text_table(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(n)
    size = rng.normal(50.0, 10.0, n).round(1)
    weight = (2.0 * size + rng.normal(0.0, 3.0, n)).round(1)
    group = np.where(size + rng.normal(0.0, 3.0, n) > 50.0, "large", "small")
    return pd.DataFrame({"size": size, "weight": weight, "group": group}).astype(str)


@pytest.fixture(scope="module")
def blanked() -> BlankedTable:
    train = text_table(400)
    return blank(train, text_table(150), infer_schema(train).schema, share=0.2, seed=0)


def test_the_truth_is_judged_as_right_and_the_mean_as_one_deviation_off(
    blanked: BlankedTable,
) -> None:
    right = judge(blanked, blanked.truth)
    assert right["group"] == {"accuracy": 1.0}
    assert right["size"] == {"error": 0.0, "absolute_error": 0.0}
    plain = judge(blanked, most_frequent(blanked))
    assert plain["size"]["error"] == pytest.approx(1.0, abs=0.35)


def test_a_regression_is_nearer_than_the_mean(blanked: BlankedTable) -> None:
    regressed, plain = (
        judge(blanked, filled) for filled in (iterative(blanked, 0), most_frequent(blanked))
    )
    assert mean_of(regressed, "error") < 0.8 * mean_of(plain, "error")
    assert regressed["group"] == plain["group"]


def test_imputations_are_judged_by_their_mode_and_mean(blanked: BlankedTable) -> None:
    train = text_table(400)
    model = Synthesizer.fit(train, preset="paper-gcvae", settings={"max_steps": 400}, device="cpu")
    draws = parse_table(model.impute(blanked.blanked, draws=8).drop(columns="draw"), blanked.schema)
    figures = {
        "gcvae": judge(blanked, point_estimate(draws, 8, blanked.schema)),
        "plain": judge(blanked, most_frequent(blanked)),
    }
    assert mean_of(figures["gcvae"], "error") < 0.9 * mean_of(figures["plain"], "error")
    assert mean_of(figures["gcvae"], "accuracy") > mean_of(figures["plain"], "accuracy")
    measures = ("accuracy", "error", "absolute_error")
    means = {name: {m: mean_of(found, m) for m in measures} for name, found in figures.items()}
    told = {"preset": "paper-gcvae", "share_blanked": 0.2, "rows": 150, "cells_judged": 90}
    told |= {"seed": 0, "made_at": "2026-11-22"}
    page = render_page(told | {"draws": 8, "seconds": 1, "means": means, "columns": figures})
    assert f"|gcvae|{means['gcvae']['accuracy']:.3f}|" in page
