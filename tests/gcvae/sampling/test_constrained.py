"""Hard rules hold in what a trained model gives, of every preset."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from gcvae import Synthesizer
from gcvae.artifact.file import pack_tensors, unpack_tensors
from gcvae.cells.values import format_table, parse_table
from gcvae.errors import ArtifactError, HardRuleError, SchemaError
from gcvae.sampling.constrained import Acceptance, ConstrainedModel
from gcvae.sampling.hard_rules import HardRules
from gcvae.sampling.samplers import SAMPLE_BLOCK_ROWS
from tests.lengths import PRESETS_TRIED
from tests.wordings import refuses

pytestmark = pytest.mark.usefixtures("few_rows")

QUICK = {"max_steps": 10, "evaluate_every_steps": 5}
HARD_RULES = [
    {"rule": "start <= end", "keep": "hard"},
    {"rule": "combinations(city, country)", "keep": "hard"},
    {"rule": "size + extra <= 40 or city == 'Rome'", "keep": "hard"},
]


REJECTING = HARD_RULES[1:]
"""Those that rejection alone keeps."""


def stays(n: int = 200, seed: int = 0) -> pd.DataFrame:
    """A table of every kind that satisfies HARD_RULES."""
    random = np.random.default_rng(seed)
    city = random.choice(["Rome", "Paris", "Lyon"], n)
    size = random.integers(0, 30, n)
    start = pd.to_datetime("2024-01-01") + pd.to_timedelta(random.integers(0, 300, n), unit="D")
    frame = pd.DataFrame(
        {
            "key": np.arange(n) + 1000,
            "start": start,
            "end": start + pd.to_timedelta(random.integers(0, 200, n), unit="D"),
            "city": city,
            "country": np.where(city == "Rome", "Italy", "France"),
            "size": size,
            "extra": np.minimum(random.normal(8.0, 3.0, n).round(1), 40.0 - size),
            "unit": "m2",
        }
    )
    frame.loc[random.choice(n, n // 10, replace=False), "country"] = None
    frame.loc[random.choice(n, n // 10, replace=False), "end"] = pd.NaT
    return frame


def fit(frame: pd.DataFrame, preset: str = "default", hard_rules: object = None) -> Synthesizer:
    chosen = HARD_RULES if hard_rules is None else hard_rules
    schema = {"rules": chosen, "find_rules": True}
    return Synthesizer.fit(frame, schema=schema, preset=preset, settings=QUICK)


def breaches(rows: pd.DataFrame, table: pd.DataFrame) -> int:
    """How many rows break HARD_RULES, told without the library."""
    late = rows["start"] > rows["end"]
    pairs = {tuple(pair) for pair in table[["city", "country"]].fillna("").to_numpy()}
    drawn = rows[["city", "country"]].fillna("").to_numpy()
    unknown = np.array([tuple(pair) not in pairs for pair in drawn])
    large = (rows["size"] + rows["extra"] > 40 + 1e-9) & (rows["city"] != "Rome")
    return int((late | unknown | large).sum())


@pytest.fixture(scope="module")
def fitted() -> Synthesizer:
    return fit(stays())


@cache
def rejecting_and_free() -> tuple[Synthesizer, Synthesizer]:
    """Models of one network with hard rules that rejection keeps, and without any."""
    return fit(stays(), hard_rules=REJECTING), fit(stays(), hard_rules=[])


# Laws


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["default", "paper-gcvae"])
@settings(max_examples=3, derandomize=True, phases=[Phase.generate])
@given(seed=st.integers(0, 10**6), n=st.integers(60, 150))
def test_every_row_satisfies_the_hard_rules_whatever_the_table(
    preset: str, seed: int, n: int
) -> None:
    table = stays(n, seed)
    rows = fit(table, preset).sample(500, seed=seed)
    assert len(rows) == 500
    assert breaches(rows, table) == 0


@pytest.mark.parametrize("preset", PRESETS_TRIED)
def test_every_preset_keeps_the_hard_rules_and_what_it_saves_does_too(
    preset: str, fitted: Synthesizer, tmp_path: Path
) -> None:
    table = stays()
    synthesizer = fitted if preset == "default" else fit(table, preset)
    rows = synthesizer.sample(1000, seed=3)
    assert breaches(rows, table) == 0
    synthesizer.save(tmp_path / "m.gcvae")
    loaded = Synthesizer.load(tmp_path / "m.gcvae")
    assert loaded.to_bytes() == synthesizer.to_bytes()
    pd.testing.assert_frame_equal(loaded.sample(1000, seed=3), rows)
    scored = [each.log_likelihood(table.head(10), draws=5) for each in (synthesizer, loaded)]
    pd.testing.assert_frame_equal(*scored)


def test_a_model_and_its_report_say_which_columns_the_hard_rules_move() -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "discount": random.choice([0, 10, 20], 600, p=[0.6, 0.2, 0.2]),
            "price": random.normal(50.0, 10.0, 600).round(2),
            "colour": random.choice(["red", "blue"], 600),
        }
    )
    frame["paid"] = (frame["price"] * (1 - frame["discount"] / 100)).round(2)
    halves = "discount == 0 or paid <= price - 4"
    frame = frame[(frame["discount"] == 0) | (frame["paid"] <= frame["price"] - 4)]
    model = fit(frame, hard_rules=[{"rule": halves, "keep": "hard"}])
    loaded = Synthesizer.from_bytes(model.to_bytes())
    moved = loaded.training_record["hard_rule_acceptance"]["moved"]
    assert {each["column"]: each["cells"] for each in moved}["discount"] == "at most 0"
    assert all(abs(each["after"] - each["before"]) >= 0.01 for each in moved)
    assert "colour" not in {each["column"] for each in moved}
    drawn = loaded.sample(3000, seed=1)
    after = next(each["after"] for each in moved if each["column"] == "discount")
    assert (drawn["discount"] <= 0).mean() == pytest.approx(after, abs=0.03)
    report = loaded.report(frame)
    assert report.to_json()["fidelity"]["moved_by_hard_rules"] == moved
    assert "Columns whose distribution the hard rules change" in report.to_html()


def test_rows_do_not_depend_on_how_many_are_drawn(fitted: Synthesizer) -> None:
    whole = fitted.sample(SAMPLE_BLOCK_ROWS + 300, seed=5)
    assert whole["key"].is_unique
    for n in (1, 40, SAMPLE_BLOCK_ROWS, SAMPLE_BLOCK_ROWS + 7):
        pd.testing.assert_frame_equal(fitted.sample(n, seed=5), whole.head(n))
    blocks = list(fitted.sample_blocks(SAMPLE_BLOCK_ROWS + 300, seed=5))
    assert [len(block) for block in blocks] == [SAMPLE_BLOCK_ROWS, 300]
    assert not fitted.sample(40, seed=6).equals(whole.head(40))


def test_no_rows_are_an_empty_table(fitted: Synthesizer) -> None:
    empty = fitted.sample(0)
    assert (len(empty), list(empty.columns)) == (0, list(stays().columns))


def test_rows_as_they_are_written_satisfy_the_hard_rules(fitted: Synthesizer) -> None:
    text = format_table(fitted.sample(1000, seed=9), fitted.schema)
    assert breaches(parse_table(text, fitted.schema), stays()) == 0


def test_without_hard_rules_the_rows_are_those_of_the_model_itself() -> None:
    bound, free = rejecting_and_free()
    assert "hard_rule_acceptance" not in free.training_record
    rows, pool = bound.sample(1000, seed=2), free.sample(SAMPLE_BLOCK_ROWS, seed=2)
    schema = bound.schema
    kept = pool[HardRules.fit(stays(), schema).kept(pool).all(axis=1)]
    n = min(len(kept), len(rows))
    assert n > 100
    columns = [name for name in pool if name != "key"]
    pd.testing.assert_frame_equal(
        kept[columns].head(n).reset_index(drop=True), rows[columns].head(n)
    )


# Acceptance


def test_the_record_says_how_many_rows_of_the_model_satisfy_what(fitted: Synthesizer) -> None:
    record = fitted.training_record["hard_rule_acceptance"]
    assert record["rows"] == 10_000
    assert record["share"] == record["accepted"] / 10_000
    shares = {part["pointer"]: part["share"] for part in record["rules"]}
    assert list(shares) == ["/rules/0", "/rules/1", "/rules/2"]
    assert record["share"] <= min(shares.values()) <= max(shares.values()) <= 1.0
    expected = np.sqrt((1 - record["share"]) / record["accepted"])
    assert record["log_standard_error"] == pytest.approx(expected)


def test_a_model_that_hardly_satisfies_a_hard_rule_is_refused_with_the_share() -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": random.normal(0, 1, 100).round(4), "c": random.choice(["x", "y"], 100)}
    )
    frame["b"] = (frame["a"] * 2).round(4)
    hard_rules = [
        {"rule": "a < 9 or c == 'x'", "keep": "hard"},
        {"rule": "a * 2 - b == 0", "keep": "hard"},
    ]
    schema = {"rules": hard_rules}
    with pytest.raises(HardRuleError) as caught:
        Synthesizer.fit(frame, schema=schema, settings=QUICK)
    [problem] = caught.value.problems
    assert problem.pointer == "/rules/1"
    assert "of 10000 rows that the model drew keep all hard rules" in problem.message
    assert "fails most, a * 2 - b == 0, is kept by 0." in problem.message
    assert str(problem.expected).startswith("at least 1%: give up the rule")


@pytest.mark.slow
def test_a_block_that_costs_too_many_draws_is_given_up(fitted: Synthesizer) -> None:
    """As when the measured acceptance was luck: here the hard rules are impossible."""
    none = {"names": ["city", "country"], "rows": []}
    never = HardRules.from_json(fitted.schema, {"combinations": {"/rules/1": none}})
    hopeful = Acceptance(100, 90, (100, 90, 100))
    model = ConstrainedModel(fitted.model, fitted.codec, never, hopeful)
    with refuses(HardRuleError, "/rules/1"):
        model.draw(5, 10, torch.Generator().manual_seed(0))


# Scores


def test_a_row_that_breaks_a_hard_rule_has_probability_zero(fitted: Synthesizer) -> None:
    rows = stays().dropna().head(4).reset_index(drop=True)
    rows.loc[1, "end"] = rows.loc[1, "start"] - pd.Timedelta(days=1)
    rows.loc[2, "country"] = "Italy" if rows.loc[2, "city"] != "Rome" else "France"
    rows.loc[3, ["city", "country", "size", "extra"]] = ["Lyon", "France", 29, 11.1]
    scores = fitted.log_likelihood(rows, draws=10)
    assert np.isfinite(scores["log_likelihood"][0])
    assert (scores["log_likelihood"][1:] == -np.inf).all()
    assert (scores["standard_error"][1:] == 0.0).all()
    assert (scores["percentile"][1:] == 0.0).all()


def test_what_is_left_is_renormalised_by_the_acceptance() -> None:
    """The scores of the same network without hard rules differ by -log(acceptance)."""
    table = stays()
    fitted, free = rejecting_and_free()
    share = fitted.training_record["hard_rule_acceptance"]["share"]
    scores = [each.log_likelihood(table, draws=10) for each in (fitted, free)]
    difference = scores[0]["log_likelihood"] - scores[1]["log_likelihood"]
    assert difference.to_numpy() == pytest.approx(-np.log(share), abs=1e-9)
    whole = table.notna().all(axis=1)  # rows with blanks rank among rows of each model's own
    percentiles = [each["percentile"][whole] for each in scores]
    pd.testing.assert_series_equal(*percentiles)


def test_a_blank_breaks_no_hard_rule_unless_it_is_broken_whatever_stands_there(
    fitted: Synthesizer,
) -> None:
    rows = stays().dropna().head(3).reset_index(drop=True)
    rows.loc[0, "end"] = pd.NaT
    rows.loc[1, "country"] = None
    rows.loc[2, ["city", "size"]] = [None, 29]
    rows.loc[2, "extra"] = 39.0
    assert np.isfinite(fitted.log_likelihood(rows, draws=10)["log_likelihood"]).all()


def test_a_condition_against_a_hard_rule_names_it(fitted: Synthesizer) -> None:
    against = {"city": "Rome", "country": "France"}
    with pytest.raises(HardRuleError) as caught:
        fitted.sample(5, given=against, seed=1)
    (problem,) = caught.value.problems
    assert "fails most, only combinations of city and country" in problem.message
    assert "a condition under which" in str(problem.expected)


@pytest.mark.slow
def test_a_column_may_have_the_name_of_the_hard_rules_contribution() -> None:
    """Its own stays, and the terms add up to the score."""
    hard_rules = [{"rule": "size + extra <= 40 or size >= 0", "keep": "hard"}]
    other = {"rule": "`(hard rules)` + extra <= 40 or extra > -100", "keep": "hard"}
    plain, named = stays(), stays().rename(columns={"size": "(hard rules)"})
    expected = fit(plain, hard_rules=hard_rules).log_likelihood(plain, draws=5)
    scores = fit(named, hard_rules=[other]).log_likelihood(named, draws=5)
    assert scores["log_likelihood"].equals(expected["log_likelihood"])
    assert list(scores)[-1] == "contributions.((hard rules))"
    terms = scores.filter(like="contributions.").sum(axis=1)
    assert terms.to_numpy() == pytest.approx(scores["log_likelihood"].to_numpy())


def test_a_scored_table_needs_no_constant_column() -> None:
    hard_rules = [{"rule": "unit == 'm2' and size >= 0", "keep": "hard"}]
    fitted = fit(stays(), "fast", hard_rules)
    scores = fitted.log_likelihood(stays().head(5).drop(columns="unit"), draws=5)
    assert np.isfinite(scores["log_likelihood"]).all()


# Files


def test_a_table_that_breaks_a_hard_rule_is_not_trained_on() -> None:
    frame = stays()
    frame.loc[7, "end"] = frame.loc[7, "start"] - pd.Timedelta(days=3)
    with refuses(SchemaError, "/rules/0"):
        fit(frame)


def test_a_model_of_the_version_that_did_not_enforce_hard_rules_is_refused(
    fitted: Synthesizer,
) -> None:
    """Whatever its schema: its codec and its weights are others too."""
    tensors, manifest = unpack_tensors(fitted.to_bytes())
    earlier = {name: part for name, part in manifest.items() if name != "hard_rules"}
    with refuses(ArtifactError):
        Synthesizer.from_bytes(pack_tensors(tensors, earlier | {"version": 1}))
