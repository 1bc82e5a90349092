"""Models that are handed on: what a minimal file lacks, and what a model says of rows."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer
from gcvae.artifact.file import pack_tensors, unpack_tensors
from gcvae.errors import ArtifactError, LeftOutError, ScoringError, SettingError
from gcvae.scoring.score_options import ScoreOptions
from gcvae.scoring.score_stream import joined_totals, new_totals, stream_scores
from tests.wordings import refuses

N_ROWS = 437
LEFT_OUT = {
    "rows", "table_sha256", "held_out_scores", "bound_held_out", "bound_train", "memory_gap",
    "history", "seconds", "seed", "settings", "rows_of_withheld_levels",
}  # fmt: skip


def table(seed: int = 0) -> pd.DataFrame:
    """Numbers, levels of which some are rare, and keys."""
    draws = np.random.default_rng(seed)
    levels = draws.choice(["red", "blue", "teal"], N_ROWS, p=[0.6, 0.3, 0.1]).astype(object)
    levels[:3] = ["only once", "also once", "once more"]
    towns = draws.choice([f"town {i}" for i in range(90)], N_ROWS)
    size = np.where(levels == "red", 4.0, 9.0) + draws.normal(size=N_ROWS).round(2)
    keys = [f"K-{i:05d}" for i in range(N_ROWS)]
    return pd.DataFrame({"size": size, "colour": levels, "town": towns, "key": keys})


@pytest.fixture(scope="module")
def whole() -> Synthesizer:
    settings = {"max_steps": 150, "report_share": 0.2}
    return Synthesizer.fit(table(), preset="fast", settings=settings, seed=1, progress=False)


@pytest.fixture(scope="module")
def minimal(whole: Synthesizer, tmp_path_factory: pytest.TempPathFactory) -> Synthesizer:
    path = tmp_path_factory.mktemp("minimal") / "model.gcvae"
    whole.save(path, minimal=True)
    return Synthesizer.load(path)


def handed_on(model: Synthesizer, scoring: str) -> Synthesizer:
    return Synthesizer.from_bytes(model.to_bytes(scoring=scoring))


def manifest_of(model: Synthesizer) -> dict[str, Any]:
    return unpack_tensors(model.to_bytes())[1]


# Minimal files


def test_a_minimal_file_has_nothing_of_the_training_record(
    whole: Synthesizer, minimal: Synthesizer
) -> None:
    before, after = manifest_of(whole), manifest_of(minimal)
    assert set(before["training_record"]) >= LEFT_OUT
    assert after["training_record"] == {"preset": "fast", "frame": "pandas", "is_minimal": True}
    assert after["data_map"] is None
    assert before["training_record"]["table_sha256"] not in json.dumps(after)


def test_a_minimal_file_has_shares_of_levels_and_no_counts(
    whole: Synthesizer, minimal: Synthesizer
) -> None:
    for name in ("colour", "town"):
        before, after = (manifest_of(m)["codec"]["columns"][name] for m in (whole, minimal))
        assert max(before["counts"]) > 1.0
        assert max(after["counts"]) < 1.0
        n_rows = sum(before["counts"])
        np.testing.assert_allclose(np.array(after["counts"]) * n_rows, before["counts"], rtol=6e-3)
        assert all(share == float(f"{share:.3g}") for share in after["counts"])
    assert sum(manifest_of(minimal)["codec"]["columns"]["colour"]["withheld"]) < 1.0


def test_a_minimal_model_draws_completes_conditions_and_maps_as_the_whole_one(
    whole: Synthesizer, minimal: Synthesizer
) -> None:
    known = table().head(9).assign(size=math.nan).drop(columns="key")
    for ask in (
        lambda model: model.sample(200, seed=3).drop(columns="key")[["size", "colour"]],
        lambda model: model.sample(50, 3, given={"colour": "red"})[["size", "colour"]],
        lambda model: model.impute(known, seed=2),
        lambda model: model.encode(known),
    ):
        pd.testing.assert_frame_equal(ask(whole), ask(minimal))
    for kind in ("expected", "total"):
        tau = [model.dependencies(kind).tau for model in (whole, minimal)]
        np.testing.assert_allclose(*tau, atol=0.01)
    scores = [model.log_likelihood(table(), draws=5) for model in (whole, minimal)]
    np.testing.assert_allclose(*(s["log_likelihood"] for s in scores), atol=0.02)


def test_a_minimal_model_says_what_it_lacks(minimal: Synthesizer) -> None:
    for kind in ("data", "difference"):
        with refuses(LeftOutError):
            minimal.dependencies(kind)
    assert "minimal" in repr(minimal)


def test_of_a_minimal_model_only_rows_with_blanks_have_percentiles(minimal: Synthesizer) -> None:
    rows = table().head(4)
    rows.loc[1, "colour"] = None
    found = minimal.log_likelihood(rows, draws=5)["percentile"]
    assert found.isna().tolist() == [True, False, True, True]
    [note] = [n for n in minimal.scorer.heading(ScoreOptions(5))["notes"] if "percentile" in n]
    assert "a minimal model has no scores of held-out rows" in note


def test_a_report_on_a_minimal_model_does_not_guess_which_rows_were_learned(
    minimal: Synthesizer,
) -> None:
    rows = table()
    alone = minimal.report(rows, seed=1)
    assert alone.parts["privacy"].verdict == "not_measured"
    beside = minimal.report(rows.head(300), rows.tail(137), seed=1)
    assert "is not known, because the model is a minimal file" in beside.parts["privacy"].sentence
    [ranks] = [f for f in beside.parts["likelihood"].figures if f.name == "percentiles"]
    assert (ranks.value, ranks.note) == (None, "a minimal model gives no percentiles")


def test_a_minimal_file_is_written_again_as_it_is(minimal: Synthesizer, tmp_path: Path) -> None:
    minimal.save(tmp_path / "again.gcvae")
    assert (tmp_path / "again.gcvae").read_bytes() == minimal.to_bytes(minimal=True)


def test_a_file_without_a_map_that_is_not_minimal_is_refused(whole: Synthesizer) -> None:
    tensors, manifest = unpack_tensors(whole.to_bytes())
    with refuses(ArtifactError):
        Synthesizer.from_bytes(pack_tensors(tensors, manifest | {"data_map": None}))
    with refuses(ArtifactError):
        Synthesizer.from_bytes(pack_tensors(tensors, manifest | {"scoring": "of"}))


# What a model says of rows


@pytest.mark.parametrize("is_minimal", [False, True])
def test_a_flag_is_all_that_a_flagging_model_says(whole: Synthesizer, is_minimal: bool) -> None:
    model = Synthesizer.from_bytes(whole.to_bytes(minimal=is_minimal, scoring="flag"))
    rows = pd.concat([model.sample(600, seed=4), table().head(3)], ignore_index=True)
    rows.loc[600:, "size"] = [900.0, math.nan, -900.0]
    flags = model.log_likelihood(rows, draws=10)
    assert flags.columns.to_list() == ["is_rare"]
    assert 0.0 <= flags["is_rare"].head(600).mean() < 0.04
    assert flags["is_rare"].tail(3).to_list() == [True, False, True]
    full = whole.log_likelihood(rows, draws=10)["log_likelihood"]
    assert full[flags["is_rare"]].max() < full[~flags["is_rare"]].quantile(0.1)


def test_flags_come_as_json_and_csv_with_their_totals(whole: Synthesizer) -> None:
    scorer = handed_on(whole, "flag").scorer
    options, rows = ScoreOptions(10), table().head(70)
    rows.loc[:1, "size"] = [900.0, -900.0]
    totals = new_totals("flag")
    heading = scorer.heading(options)
    text = b"".join(stream_scores(scorer.blocks(rows, options), "json", heading, totals))
    document = json.loads(text)
    assert [score["is_rare"] for score in document["scores"][:2]] == [True, True]
    assert all(set(score) == {"is_rare"} for score in document["scores"])
    n_rare = sum(score["is_rare"] for score in document["scores"])
    assert document["totals"] == {"rows": 70, "n_rare": n_rare, "n_unknown": 0}
    assert "log_likelihood" not in text.decode()
    csv = b"".join(stream_scores(scorer.blocks(rows, options), "csv", {}, new_totals("flag")))
    assert csv.splitlines()[:2] == [b"is_rare", b"True"]
    twice = joined_totals([totals.state(), totals.state()])
    assert twice.to_json() == {"rows": 140, "n_rare": 2 * n_rare, "n_unknown": 0}
    assert scorer.empty().columns.to_list() == ["is_rare"]


@pytest.mark.parametrize("options", [{"measure": "pmf"}, {"score_missingness": True}])
def test_a_flag_has_no_other_options(whole: Synthesizer, options: dict[str, Any]) -> None:
    with refuses(SettingError):
        handed_on(whole, "flag").log_likelihood(table().head(2), **options)


def test_a_model_without_scores_gives_none_and_still_draws(whole: Synthesizer) -> None:
    model = handed_on(whole, "off")
    for ask in (lambda: model.log_likelihood(table()), lambda: model.scorer):
        with refuses(ScoringError):
            ask()
    assert model.sample(20, seed=1).equals(whole.sample(20, seed=1))


def test_scoring_only_gets_stricter(whole: Synthesizer) -> None:
    model = handed_on(whole, "flag")
    model.restrict_scoring("full")
    assert model.scoring == handed_on(model, "flag").scoring == "flag"
    assert handed_on(model, "off").scoring == "off"
    assert whole.scoring == handed_on(whole, "full").scoring == "full"
    for strict, looser in ((model, "full"), (handed_on(model, "off"), "flag")):
        with refuses(SettingError, "/scoring"):
            strict.to_bytes(scoring=looser)
    with refuses(SettingError):
        whole.to_bytes(scoring="on")


@pytest.mark.parametrize("scoring", ["flag", "off"])
def test_the_probability_of_a_condition_is_a_score_and_is_not_told(
    whole: Synthesizer, scoring: str
) -> None:
    model = handed_on(whole, scoring)
    for asked in ({"given": {"colour": "red"}}, {"distribution": {"colour": {"red": 1.0}}}):
        assert "probability" in whole.sampler(1, **asked).summary(9)
        assert list(model.sampler(1, **asked).summary(9)) == ["effective_sample_size"]


@pytest.mark.slow
def test_a_report_has_no_likelihoods_of_a_model_that_gives_none(whole: Synthesizer) -> None:
    model = Synthesizer.from_bytes(whole.to_bytes(scoring="off"))
    # Rows of a withheld town have no likelihood: what is held back would leave too few of others.
    rows, holdout = table(), table(seed=9)
    full, off = (each.report(rows, holdout, seed=1).to_json() for each in (whole, model))
    assert "unseen_nats" in {figure["name"] for figure in full["likelihood"]["figures"]}, full
    assert off["likelihood"]["figures"] == []
    assert off["likelihood"]["sentence"] == (
        "Not measured: the scoring of the model is restricted (off)."
    )
    names = {attack["name"] for attack in off["privacy"]["attacks"]}
    assert "distance" in names
    assert not any(name.startswith("likelihood") for name in names)
    verdicts = {found["of"]: found["verdict"] for found in off["decisions"]}
    assert verdicts["model"] in ("not_measured", "amber", "red")
    assert "The scores of the model were not attacked" in off["privacy"]["sentence"]
