"""Conditions: rows by the model agree with those that rejection leaves, in every kind of column."""

from __future__ import annotations

import itertools
from datetime import date, time, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from gcvae import Synthesizer
from gcvae.codec.region import Region
from gcvae.errors import ConditionError, GcvaeError
from gcvae.files.tables import read_table
from gcvae.model.decoders import GenerativeModel
from gcvae.numerics.generators import generator_for
from gcvae.sampling.conditioning import ConditionedModel
from gcvae.sampling.regions import level_region
from gcvae.sampling.samplers import SAMPLE_BLOCK_ROWS
from tests.gcvae.conditioned_tables import excess_variation, fitted, meets
from tests.gcvae.model.test_autoregressive import autoregressive_model
from tests.gcvae.models import levels, random_model, rows_of
from tests.lengths import AT_LENGTH
from tests.wordings import refuses

DISCRETE = [levels(2), levels(3), levels(4)]
LEAVES = {
    "paper-vae": ({"city": "Rome", "height": {"min": 172}}, {"since": {"max": "2019-11-30"}}),
    "paper-vae-roc": ({"height": {"min": 165.5, "max": 172}}, {"age": 40, "member": "no"}),
    "paper-gcvae": (
        {"city": "Rome"},
        {"city": [None, "Turin"]},
        {"age": {"min": 40, "max": 50}},
        {"gain": 0, "grade": {"min": "mid"}},
        {"since": {"min": "2020-03-01"}, "member": "yes"},
    ),
    "fast": (
        {"city": None},
        {"gain": {"min": 40, "max": 200}},
        {"height": {"max": 168}, "city": ["Rome", "Paris"]},
        {
            "age": {"min": 40, "max": 55},
            "grade": "mid",
            "city": ["Rome", "Paris", "Lyon"],
            "member": "yes",
            "since": {"min": "2019-10-01", "max": "2020-06-30"},
            "height": {"min": 162, "max": 178},
        },
    ),
}
"""By preset: one, two and all but one columns, of every kind."""
LEAVES_TRIED = LEAVES if AT_LENGTH else ("paper-gcvae", "fast")
"""A model with a copula and an autoregressive one in a brief run."""


@cache
def pool(preset: str) -> pd.DataFrame:
    return fitted(preset).sample(60_000, seed=9)


@pytest.mark.parametrize(
    ("preset", "given"), [(preset, given) for preset in LEAVES_TRIED for given in LEAVES[preset]]
)
def test_rows_under_a_condition_are_those_that_rejection_leaves(
    preset: str, given: dict[str, Any]
) -> None:
    rows = fitted(preset).sample(3000, seed=3, given=given)
    assert len(rows) == 3000
    assert meets(rows, given).all()
    accepted = pool(preset)[meets(pool(preset), given)].head(3000)
    assert len(accepted) > 500
    assert max(excess_variation(rows[c], accepted[c]) for c in rows) < 0.03


@pytest.mark.parametrize("preset", ["paper-vae", "paper-gcvae", "gcvae", "default"])
def test_the_pilot_s_probability_is_that_of_the_model_s_rows(preset: str) -> None:
    model = (
        autoregressive_model(DISCRETE)
        if preset == "default"
        else random_model(preset, DISCRETE, strength=3.0)
    )
    regions = [level_region(np.array([-np.inf, 0.0])), None, _among(4, [0, 2])]
    found = ConditionedModel.fit(model.float(), regions, seed=0)
    with torch.no_grad():
        codes, _ = model.sample(100_000, generator_for(0, "rows"))
    share = ((codes[:, 0] == 1) & ((codes[:, 2] == 0) | (codes[:, 2] == 2))).float().mean()
    assert np.exp(found.log_probability) == pytest.approx(float(share), rel=0.06)


def test_all_but_one_known_level_leaves_the_exact_conditional() -> None:
    """p(x_2 | x_0, x_1) autoregressively: the masses of all rows are exact given z."""
    model = autoregressive_model(DISCRETE).float()
    for known in itertools.product(range(2), range(3)):
        regions: list[Region | None] = [*map(_only, (2, 3), known), None]
        drawn, _ = ConditionedModel.fit(model, regions, 0).draw(8192, generator_for(1, "rows"))
        assert (drawn[:, :2] == torch.tensor(known)).all()
        exact = _joint(model)[known[0], known[1]]
        counts = torch.bincount(drawn[:, 2].long(), minlength=4) / len(drawn)
        torch.testing.assert_close(counts, exact / exact.sum(), atol=0.025, rtol=0.0)


@cache
def _joint(model: GenerativeModel) -> torch.Tensor:
    rows = rows_of(list(itertools.product(range(2), range(3), range(4))))
    with torch.no_grad():
        z = model.prior.sample(20_000, generator_for(5, "joint"))
        return model.conditional(z[:, None]).log_prob(rows, None).exp().mean(0).view(2, 3, 4)


def _only(n_codes: int, code: int) -> Region:
    return _among(n_codes, [code])


def _among(n_codes: int, codes: list[int]) -> Region:
    log_share = np.full(n_codes, -np.inf)
    log_share[codes] = 0.0
    return level_region(log_share)


def test_rows_do_not_depend_on_how_they_are_cut() -> None:
    synthesizer, given = fitted("paper-gcvae"), {"member": "yes"}
    whole = synthesizer.sample(SAMPLE_BLOCK_ROWS + 300, seed=5, given=given)
    for n in (1, 40, SAMPLE_BLOCK_ROWS, SAMPLE_BLOCK_ROWS + 7):
        part = synthesizer.sample(n, seed=5, given=given)
        pd.testing.assert_frame_equal(part, whole.head(n))
    blocks = synthesizer.sample_blocks(SAMPLE_BLOCK_ROWS + 300, seed=5, given=given)
    assert [len(block) for block in blocks] == [SAMPLE_BLOCK_ROWS, 300]
    other = synthesizer.sample(100, seed=6, given=given)
    assert not other.equals(whole.head(100))


def test_rows_under_a_rare_condition_are_diverse() -> None:
    given = {"age": {"min": 75}, "member": "no"}
    sampler = fitted("fast").sampler(1, given=given)
    told = sampler.summary(3000)
    assert told["probability"] < 0.01
    rows = pd.concat(sampler.blocks(3000))
    assert told["effective_sample_size"] > 500
    assert len(rows.drop_duplicates()) > 0.8 * len(rows)


def test_a_level_s_share_is_what_the_distribution_says() -> None:
    shares = {"Rome": 0.5, "Turin": 0.25, "Lyon": 0.25}
    synthesizer = fitted("paper-gcvae")
    given = {"member": "yes"}
    rows = synthesizer.sample(1000, seed=2, given=given, distribution={"city": shares})
    assert meets(rows, given).all()
    counts = rows["city"].value_counts(normalize=True)
    assert all(counts[level] == pytest.approx(share, abs=0.003) for level, share in shares.items())
    in_rome = synthesizer.sample(4000, seed=8, given=given | {"city": "Rome"})
    rows = synthesizer.sample(8000, seed=2, given=given, distribution={"city": shares})
    part = rows[rows["city"] == "Rome"]
    assert max(excess_variation(part[c], in_rome[c]) for c in rows) < 0.03


def test_every_row_is_drawn_around_its_known_cells() -> None:
    known = pd.DataFrame(
        {
            "city": ["Rome", "", "Lyon", None] * 150,
            "height": ["", "171.5", "180.0", ""] * 150,
            "since": ["2020-02-01", "", "", ""] * 150,
        }
    )
    rows = fitted("fast").sample(seed=1, given_rows=known)
    again = fitted("fast").sample(len(known), seed=1, given_rows=known)
    pd.testing.assert_frame_equal(rows, again)
    assert (rows["city"][0::4] == "Rome").all()
    assert (rows["since"][0::4] == pd.Timestamp("2020-02-01")).all()
    assert (rows["height"][1::4] == 171.5).all()
    assert (rows["height"][2::4] == 180.0).all()
    assert rows["city"][3::4].nunique() > 2
    tall = fitted("fast").sample(600, seed=4, given={"height": 180.0, "city": "Lyon"})
    assert excess_variation(rows["age"][2::4], tall["age"]) < 0.12


def test_a_column_may_be_called_self() -> None:
    frame = pd.DataFrame({"self": [1.5, 2.5, 4.0, 9.5] * 10, "city": ["Rome", "Oslo"] * 20})
    schema = {"columns": [{"name": "self", "kind": "continuous"}]}
    model = Synthesizer.fit(frame, schema=schema, preset="paper-vae", settings={"max_steps": 4})
    known = pd.DataFrame({"city": ["Rome", "Oslo"], "self": [2.5, None]})
    rows = model.sample(seed=1, given_rows=known)
    assert (rows["self"][0], list(rows["city"])) == (2.5, ["Rome", "Oslo"])
    assert len(model.sample(seed=1, given_rows=known[["city"]])) == 2


def test_a_known_number_beyond_limits_or_decimals_is_the_nearest_that_the_column_has() -> None:
    known = {"height": ["-0", "99999", "170.06", ""], "since": ["", "", "2150-01-01", ""]}
    rows = fitted("fast").sample(seed=1, given_rows=pd.DataFrame(known | {"age": "400"}))
    schema = fitted("fast").schema
    height = schema["height"]
    assert rows["height"][:3].tolist() == [height.minimum, height.maximum, 170.1]
    assert str(rows["since"][2].date()) == schema["since"].maximum
    assert (rows["age"] == schema["age"].maximum).all()


def test_a_known_cell_of_a_file_is_refused_by_its_line() -> None:
    frame = read_table(b'city,since\nRome,2020-01-01\n"Oslo",\n')
    with refuses(ConditionError, line=3, column="city"):
        fitted("fast").sample(given_rows=frame)


@pytest.mark.parametrize(
    ("conditions", "place"),
    [
        ({"given": {"town": "Rome"}}, "/given/town"),
        ({"given": {"city": "Oslo"}}, "/given/city"),
        ({"given": {"city": {"min": "Rome"}}}, "/given/city"),
        ({"given": {"member": None}}, "/given/member"),
        ({"given": {"age": "old"}}, "/given/age"),
        ({"given": {"age": []}}, "/given/age"),
        ({"given": {"age": {"from": 3}}}, "/given/age"),
        ({"given": {"age": {"min": 300}}}, "/given/age"),
        ({"given": {"height": {"min": 170.01, "max": 170.04}}}, "/given/height"),
        ({"given": {"since": {"min": "soon"}}}, "/given/since"),
        ({"distribution": {"city": {"Rome": 0.5}}}, "/distribution/city"),
        ({"distribution": {"city": {"Rome": 2}}}, "/distribution/city/Rome"),
        ({"distribution": {"city": {"Oslo": 1}}}, "/distribution/city/Oslo"),
        ({"distribution": {}}, "/distribution"),
        ({"given_rows": pd.DataFrame({"city": ["Rome", "Oslo"]})}, None),
        ({"given_rows": pd.DataFrame({"town": ["400"]})}, None),
    ],
)
def test_what_can_not_be_asked_is_refused_by_its_place(
    conditions: dict[str, Any], place: str | None
) -> None:
    with refuses(GcvaeError, place):
        fitted("paper-gcvae").sampler(0, **conditions)


def test_a_condition_that_the_model_holds_for_impossible_is_refused_with_its_probability() -> None:
    model = random_model("paper-vae", DISCRETE).float()
    for parameter in model.decoder.parameters():
        parameter.data.zero_()
    group = model.marginals.code_groups[0]
    group.logits.bias.data.view(group.shape)[0, 0] = 40.0
    with refuses(ConditionError):
        ConditionedModel.fit(model, [_only(2, 1), None, None], 0)
    with refuses(ConditionError):
        ConditionedModel.fit(model, [_only(2, 1), None, None], 0, reveals_probability=False)


@pytest.mark.parametrize("preset", ["fast", "paper-gcvae", "paper-vae-roc"])
def test_missing_numbers_and_dates_can_be_asked_for(preset: str) -> None:
    random = np.random.default_rng(4)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 400, 300), unit="D")
    frame = pd.DataFrame(
        {
            "size": random.normal(10, 2, 300).round(2),
            "since": days.strftime("%Y-%m-%d"),
            "group": random.choice(["a", "b"], 300),
        }
    )
    blank = frame.mask(random.random(frame.shape) < [0.3, 0.3, 0.0])
    model = Synthesizer.fit(blank, preset=preset, settings={"max_steps": 10}, device="cpu")
    rows = model.sample(50, given={"size": None, "group": "a"})
    assert rows["size"].isna().all()
    assert (rows["group"] == "a").all()
    rows = model.sample(50, given={"since": [None, "2020-03-01"]})
    assert set(rows["since"].dropna().astype(str)) <= {"2020-03-01"}


def test_a_given_number_of_more_decimals_is_the_nearest_of_the_column() -> None:
    rows = fitted("fast").sample(200, seed=1, given={"height": [170.04, "171.46"]})
    assert set(rows["height"]) <= {170.0, 171.5}


@pytest.mark.parametrize(
    "given",
    [
        {"height": 1000},
        {"height": 1e308},
        {"age": [30, 400]},
        {"since": "2150-01-01"},
    ],
)
def test_a_given_number_beyond_the_limits_is_refused(given: dict[str, Any]) -> None:
    with refuses(ConditionError):
        fitted("fast").sample(5, given=given)


def test_ends_that_no_level_lies_between_are_named_as_they_were_given() -> None:
    prices = ["12,50 €", "7,25 €", "1.012,00 €", "3,10 €"] * 10
    frame = pd.DataFrame({"price": prices, "rooms": ["1", "2", "3", "5"] * 10})
    schema = {"columns": [{"name": "price", "kind": "continuous"}]}
    model = Synthesizer.fit(frame, schema=schema, preset="paper-vae", settings={"max_steps": 4})
    for given in (
        {"rooms": {"min": 5, "max": 2}},
        {"rooms": {"min": 4, "max": 4}},
        {"price": {"min": "200 USD"}},
    ):
        with refuses(ConditionError):
            model.sample(5, seed=1, given=given)


_TYPED = pd.DataFrame(
    {
        "n": np.arange(60) % 7,
        "product": ["Lamp", "Pen", "Rug"] * 20,
        "day": pd.date_range("2024-01-01", periods=60),
        "part": (np.arange(60) % 4) / 4.0,
        "at": pd.date_range("2024-01-01 08:30:00", periods=60, freq="7h"),
        "took": pd.to_timedelta(np.arange(60) % 11, unit="m").astype("timedelta64[s]"),
        "size": np.where(np.arange(60) % 9, np.arange(60) % 5, np.nan),
    }
)


@pytest.fixture(scope="module")
def of_typed_columns() -> Synthesizer:
    """A model of columns that were no text."""
    return Synthesizer.fit(_TYPED, preset="fast", seed=1, settings={"max_steps": 5})


@pytest.mark.parametrize(
    ("given", "document"),
    [
        ({"n": _TYPED["n"].max()}, {"n": 6}),
        ({"product": _TYPED["product"].unique()[:2]}, {"product": ["Lamp", "Pen"]}),
        ({"part": np.float64(0.25)}, {"part": 0.25}),
        ({"day": _TYPED["day"].to_numpy()[3]}, {"day": "2024-01-04"}),
        ({"day": {"min": pd.Timestamp("2024-02-01")}}, {"day": {"min": "2024-02-01"}}),
        ({"day": _TYPED["day"][:2]}, {"day": ["2024-01-01", "2024-01-02"]}),
        ({"size": np.nan}, {"size": None}),
        ({"size": [pd.NaT, 2]}, {"size": [None, 2]}),
        ({"day": pd.Period("2024-02")}, {"day": {"min": "2024-02-01", "max": "2024-02-29"}}),
        ({"day": "2024Q1"}, {"day": {"min": "2024-01-01", "max": "2024-03-31"}}),
        ({"day": {"max": "2024-01"}}, {"day": {"max": "2024-01-31"}}),
        (
            {"at": date(2024, 1, 3)},
            {"at": {"min": "2024-01-03 00:00:00", "max": "2024-01-03 23:59:59"}},
        ),
        (
            {"at": "2024-01-03"},
            {"at": {"min": "2024-01-03 00:00:00", "max": "2024-01-03 23:59:59"}},
        ),
        ({"took": pd.Timedelta(minutes=3)}, {"took": 180}),
        ({"took": {"max": timedelta(minutes=3)}}, {"took": {"max": 180}}),
    ],
)
def test_a_condition_takes_the_values_of_a_frame_as_they_are(
    of_typed_columns: Synthesizer, given: Any, document: Any
) -> None:
    one, other = (of_typed_columns.sample(20, seed=3, given=each) for each in (given, document))
    pd.testing.assert_frame_equal(one, other)


def test_a_time_that_the_column_can_not_write_is_refused(of_typed_columns: Synthesizer) -> None:
    with refuses(ConditionError, "/given/day"):
        of_typed_columns.sample(3, given={"day": pd.Timestamp("2024-02-01 12:00")})


@pytest.mark.parametrize("day", ["9998", "9998-12", "9998-12-31", pd.Period("9998"), "0001-Q1"])
def test_a_span_beyond_every_date_of_a_table_is_refused(
    of_typed_columns: Synthesizer, day: Any
) -> None:
    beyond, before = ("max", "min") if day == "0001-Q1" else ("min", "max")
    assert len(of_typed_columns.sample(3, given={"day": {before: day}})) == 3
    for given in ({"day": day}, {"day": {beyond: day}}, {"at": {beyond: day}}):
        with refuses(ConditionError, f"/given/{next(iter(given))}"):
            of_typed_columns.sample(3, given=given)


@pytest.mark.parametrize("given", ["x", 5, [1]])
def test_a_condition_that_is_no_object_is_refused(given: Any) -> None:
    with refuses(ConditionError, "/given"):
        fitted("fast").sample(2, given=given)


@pytest.mark.parametrize("call", ["sample", "sampler", "log_likelihood"])
def test_an_argument_of_another_name_is_refused_by_the_call_itself(call: str) -> None:
    with pytest.raises(TypeError, match=rf"\.{call}\(\) got an unexpected .*'givne'"):
        getattr(fitted("fast"), call)(givne={"age": 40})


@pytest.mark.parametrize("zone", ["+02:00", "Europe/Berlin"])
def test_a_day_is_the_day_of_the_columns_clock_and_a_moment_of_any_zone_itself(zone: str) -> None:
    moments = pd.date_range("2024-05-01 00:30", periods=400, freq="53min", tz="Europe/Berlin")
    at = pd.Series(moments.astype(str) if zone == "+02:00" else moments)
    table = pd.DataFrame({"at": at, "n": np.arange(400) % 7})
    model = Synthesizer.fit(table, preset="fast", seed=0, settings={"max_steps": 5})
    drawn = model.sample(50, seed=1, given={"at": "2024-05-04"})["at"].astype(str)
    assert set(drawn.str[:10]) == {"2024-05-04"}
    moment = moments[77].tz_convert("America/New_York")
    same = model.sample(2, seed=1, given={"at": moment})["at"]
    assert set(pd.to_datetime(same)) == {moments[77]}


def test_times_of_day_decimals_and_naive_moments_are_read_as_the_column_has_them() -> None:
    random = np.random.default_rng(0)
    hours = pd.to_timedelta(random.integers(0, 9000, 300), "h")
    frame = pd.DataFrame(
        {
            "at": (pd.Timestamp("2024-01-01") + hours).tz_localize("UTC").tz_convert("Asia/Tokyo"),
            "time": [time(int(k) % 24, int(k) % 60) for k in random.integers(0, 999, 300)],
            "price": [Decimal(int(k)) / 100 for k in random.integers(100, 999, 300)],
            "count": random.integers(1, 50, 300),
        }
    )
    model = Synthesizer.fit(frame, preset="fast", settings={"max_steps": 5}, seed=0)
    model = Synthesizer.from_bytes(model.to_bytes())

    def drawn(**given: Any) -> pd.DataFrame:
        return model.sample(3, seed=1, given=given)

    moment = pd.Timestamp("2024-03-05 14:00")  # by the clock of the column
    for naive in (moment, moment.to_pydatetime(), moment.to_datetime64()):
        assert (drawn(at=naive)["at"] == moment.tz_localize("Asia/Tokyo")).all()
    assert (drawn(at=moment.tz_localize("UTC"))["at"] == moment.tz_localize("UTC")).all()
    assert set(drawn(time=time(13, 13))["time"]) == {time(13, 13)}
    assert set(drawn(price=Decimal("5.55"))["price"]) == {Decimal("5.55")}
    assert set(drawn(count=[Decimal(7)])["count"]) == {7}
    for column, wrong in (("count", time(13, 4)), ("at", time(13, 4)), ("count", Decimal("7.5"))):
        with refuses(ConditionError, f"/given/{column}"):
            drawn(**{column: wrong})
