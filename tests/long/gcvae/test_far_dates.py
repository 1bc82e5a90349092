"""Dates such as 9999-12-31 are values like any other, wherever cells come in or go out."""

from __future__ import annotations

import itertools
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from gcvae import Synthesizer, infer_schema, write_table
from gcvae.cells.values import format_table, parse_table
from gcvae.errors import ConditionError
from gcvae.evaluation.report.histograms import column_shares
from tests.wordings import refuses

N = 2_000
NEVER, UNTIL, SINCE, STATE = "9999-12-31", "до", "有效自", "état"
SHORT = {"max_steps": 80, "batch_size": 256}


def contracts(*, empties: float = 0.1, never: str = NEVER, form: str = "%Y-%m-%d") -> pd.DataFrame:
    """Contracts, of the open ones half without an end, of the closed ones hardly any."""
    random = np.random.default_rng(0)
    since = pd.Timestamp("2019-01-01") + pd.to_timedelta(random.integers(0, 1500, N), unit="D")
    end = since + pd.to_timedelta(random.gamma(2, 60, N).astype(int), unit="D")
    is_open = random.random(N) < 0.3
    is_never = random.random(N) < np.where(is_open, 0.5, 0.03)
    until = np.where(is_never, never, end.strftime(form))
    until = np.where(random.random(N) < empties, "", until)
    state = np.where(is_open, "open", "closed")
    return pd.DataFrame({UNTIL: until, STATE: state, SINCE: since.strftime("%Y-%m-%d")})


def saved(model: Synthesizer, folder: Path) -> Synthesizer:
    model.save(folder / "m.gcvae")
    return Synthesizer.load(folder / "m.gcvae")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Synthesizer:
    """Of a column with dates, never, and empty cells."""
    found = Synthesizer.fit(contracts(), seed=0, settings=SHORT)
    return saved(found, tmp_path_factory.mktemp("never"))


@pytest.fixture(scope="module")
def without_empties(tmp_path_factory: pytest.TempPathFactory) -> Synthesizer:
    found = Synthesizer.fit(contracts(empties=0.0), seed=0, settings=SHORT)
    return saved(found, tmp_path_factory.mktemp("never"))


def written(model: Synthesizer, rows: Any) -> pd.DataFrame:
    return format_table(rows, model.schema)


def shares(rows: pd.DataFrame) -> tuple[float, float]:
    return float((rows[UNTIL] == NEVER).mean()), float((rows[UNTIL] == "").mean())


def test_rows_have_dates_never_and_empty_cells_as_often_as_the_table(model: Synthesizer) -> None:
    assert model.schema[UNTIL].maximum == NEVER
    assert model.schema[UNTIL].missing.markers == ("",)
    table, drawn = contracts(), written(model, model.sample(4000, 1))
    for state in ("open", "closed"):
        real, found = (shares(rows[rows[STATE] == state]) for rows in (table, drawn))
        assert found == pytest.approx(real, abs=0.09)


def test_drawn_frames_hold_the_date_itself(model: Synthesizer) -> None:
    drawn = model.sample(300, 1)
    assert (drawn[UNTIL] == NEVER).any()
    scored = [model.log_likelihood(rows) for rows in (drawn, written(model, drawn))]
    assert scored[0].equals(scored[1])


def test_imputation_leaves_never_and_fills_what_is_empty(
    model: Synthesizer, without_empties: Synthesizer
) -> None:
    rows = pd.DataFrame(
        {STATE: ["open", "", "closed", ""] * 50, UNTIL: [NEVER, NEVER, "", ""] * 50}
    )
    for synthesizer in (model, without_empties):
        for columns in ([UNTIL], None):
            filled = synthesizer.impute(rows, columns=columns)
            assert (filled[UNTIL][rows[UNTIL] == NEVER] == NEVER).all()
            assert (filled[UNTIL] != "").all()
            assert (filled[STATE] != "").all() == (columns is None)
        guessed = filled[STATE][1::4]  # beside never
        assert (guessed == "open").mean() > 0.6


def test_a_typed_frame_is_filled_in_a_dtype_that_holds_never(without_empties: Synthesizer) -> None:
    rows = pd.DataFrame({STATE: ["open"] * 60, UNTIL: pd.Series([pd.NaT] * 60)})
    filled = without_empties.impute(rows)
    assert 0.2 < (filled[UNTIL] == datetime(9999, 12, 31)).mean() < 0.9


def test_never_is_scored_as_the_value_that_it_is(
    model: Synthesizer, without_empties: Synthesizer
) -> None:
    cells = [(NEVER, "closed"), (NEVER, "open"), ("", "closed")]
    rows = pd.DataFrame(cells, columns=[UNTIL, STATE]).assign(**{SINCE: "2020-05-05"})
    for synthesizer in (model, without_empties):
        scores = synthesizer.log_likelihood(rows)
        terms = scores[f"contributions.{UNTIL}"]
        assert terms[2] == 0.0, "an empty cell is integrated out"
        assert terms[0] < -2.0 < terms[1] < -0.1
        assert scores["log_likelihood"][0] < scores["log_likelihood"][2] - 2.0
        assert scores["percentile"].notna().all()
    as_missing = model.log_likelihood(rows, score_missingness=True)[f"contributions.{UNTIL}"]
    assert as_missing[2] < -1.0
    assert as_missing[:2].tolist() == pytest.approx(
        model.log_likelihood(rows)[f"contributions.{UNTIL}"][:2].tolist(), abs=0.2
    )
    surprised = without_empties.log_likelihood(rows, score_missingness=True)
    assert surprised["log_likelihood"][2] == -np.inf


DAYS = pd.date_range("2024-01-01", periods=9).strftime("%Y-%m-%d").tolist()


def games(never: str) -> pd.DataFrame:
    """First and last day, few enough that all rows can be counted."""
    random = np.random.default_rng(1)
    first = random.integers(0, 4, N)
    last = np.array(DAYS)[first + random.binomial(3, 0.4, N)]
    last = np.where(random.random(N) < np.where(first > 1, 0.5, 0.1), never, last)
    last = np.where(random.random(N) < 0.1, "", last)
    return pd.DataFrame({UNTIL: last, SINCE: np.array(DAYS)[first]})


@pytest.mark.parametrize("never", [NEVER, "0001-01-01"])
@pytest.mark.parametrize("rules", [[], [{"rule": f"{UNTIL} >= {SINCE}"}]])
def test_masses_of_never_dates_and_empty_cells_add_up_to_one(
    never: str, rules: list[dict[str, Any]]
) -> None:
    table = games(never)
    model = Synthesizer.fit(table, schema={"rules": rules}, seed=0, settings=SHORT)
    rows = pd.DataFrame(
        [{UNTIL: b, SINCE: a} for a, b in itertools.product(DAYS[:4], [never, "", *DAYS])]
    )
    options: dict[str, Any] = {"draws": 200, "measure": "rounding_cell"}
    scores = model.log_likelihood(rows, score_missingness=True, **options)
    masses = np.exp(scores["log_likelihood"])
    assert masses.sum() == pytest.approx(1.0, abs=0.02)
    for cell in (never, ""):
        real = (table[UNTIL] == cell).mean()
        assert masses[rows[UNTIL] == cell].sum() == pytest.approx(real, abs=0.04)
    drawn = written(model, model.sample(4000, 1))
    assert (drawn[UNTIL] == never).mean() == pytest.approx((table[UNTIL] == never).mean(), abs=0.06)
    given = model.sampler(1, given={UNTIL: never}).summary(10)["probability"]
    assert given == pytest.approx(masses[rows[UNTIL] == never].sum(), abs=0.03)


def test_in_times_of_seconds_never_stands_beside_the_order() -> None:
    never = "9999-12-31 23:59:59"
    table = contracts(never=never, form="%Y-%m-%d 12:%M:%S")
    model = Synthesizer.fit(table, seed=0, settings=SHORT)
    order = f"{UNTIL} >= {SINCE} or {UNTIL} == '{never}'"
    assert [str(rule) for rule in model.schema.rules or ()] == [order]
    drawn = written(model, model.sample(2000, 1))[UNTIL]
    assert (drawn == never).mean() == pytest.approx((table[UNTIL] == never).mean(), abs=0.06)
    assert (drawn[drawn != never] < "2030").all()


GIVEN_NEVER = (date(9999, 12, 31), datetime(9999, 12, 31), np.datetime64(NEVER), NEVER,
               {"min": "2100-01-01"}, {"min": date(9999, 12, 31)}, [NEVER, NEVER])  # fmt: skip


@pytest.mark.parametrize("given", GIVEN_NEVER, ids=str)
def test_a_condition_may_name_never(model: Synthesizer, given: Any) -> None:
    assert (written(model, model.sample(50, 1, given={UNTIL: given}))[UNTIL] == NEVER).all()


def test_a_range_reaches_never_and_a_range_of_dates_does_not(model: Synthesizer) -> None:
    for end in (NEVER, date(9999, 12, 31)):
        drawn = written(
            model, model.sample(500, 1, given={UNTIL: {"min": "2022-01-01", "max": end}})
        )
        assert 0.1 < (drawn[UNTIL] == NEVER).mean() < 0.9
        assert (drawn[UNTIL] >= "2022-01-01").all()
    early = written(model, model.sample(500, 1, given={UNTIL: {"max": "2022-01-01"}}))
    assert (early[UNTIL] <= "2022-01-01").all()
    known = [
        model.sampler(1, given={UNTIL: x}).summary(9)["probability"] for x in ({"max": NEVER}, None)
    ]
    assert sum(known) == pytest.approx(1.0, abs=0.01)


def test_a_range_that_ends_before_never_has_usual_dates_alone(model: Synthesizer) -> None:
    drawn = written(model, model.sample(200, 1, given={UNTIL: {"max": "9998-12-31"}}))
    assert drawn[UNTIL].between("2019-01-01", "2030-01-01").all()
    with refuses(ConditionError, "/given/до"):
        model.sample(5, given={UNTIL: {"max": "10000-01-01"}})


def test_known_cells_that_are_never_stay(model: Synthesizer) -> None:
    known = pd.DataFrame({UNTIL: [NEVER, "2022-05-05", ""] * 40})
    around = written(model, model.sample(given_rows=known, seed=1))
    assert (around[UNTIL][::3] == NEVER).all()
    assert (around[STATE][::3] == "open").mean() > 0.6
    assert (around[UNTIL][1::3] == "2022-05-05").all()
    assert set(around[UNTIL][2::3]) > {NEVER}


def test_posteriors_tell_never_from_an_empty_cell(model: Synthesizer) -> None:
    rows = pd.DataFrame({UNTIL: [NEVER, ""], STATE: ["closed"] * 2, SINCE: ["2020-05-05"] * 2})
    means = model.encode(rows).filter(like="mean")
    assert not np.allclose(means.iloc[0], means.iloc[1])


KINDS = ("text", "date", "datetime", "microseconds")


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_reads_the_parquet_files_of_its_rows(kind: str, tmp_path: Path) -> None:
    table = contracts()
    dates = [date.fromisoformat(text) if text else None for text in table[UNTIL]]
    if kind == "date":
        table[UNTIL] = pd.Series(dates, dtype=object)
    if kind == "datetime":
        midnights = [x and datetime(x.year, x.month, x.day) for x in dates]
        table[UNTIL] = pd.Series(midnights, dtype=object)
    if kind == "microseconds":
        table[UNTIL] = pd.Series(np.array(dates, dtype="datetime64[us]"))
    model = Synthesizer.fit(table, seed=0, settings={"max_steps": 2})
    drawn = model.sample(200, 1)
    if kind != "text":
        assert drawn[UNTIL].dtype == table[UNTIL].dtype
    write_table(drawn, tmp_path / "rows.parquet", model.schema)
    cells = pq.read_table(tmp_path / "rows.parquet").column(UNTIL).to_pylist()
    assert any(str(cell)[:10] == NEVER for cell in cells)
    scores = model.log_likelihood(drawn)["log_likelihood"]
    again = model.log_likelihood(tmp_path / "rows.parquet")["log_likelihood"]
    assert scores.tolist() == again.tolist()


def test_parts_of_dates_keep_their_steps_beside_never() -> None:
    table = contracts().drop(columns=SINCE)
    ends = pd.to_datetime(table[UNTIL], errors="coerce", format="%Y-%m-%d")
    ends += pd.to_timedelta(np.where(ends.dt.dayofweek > 4, 2, 0), unit="D")
    table[UNTIL] = ends.dt.strftime("%Y-%m-%d").where(ends.notna(), table[UNTIL])
    model = Synthesizer.fit(table, seed=0, settings=SHORT)
    assert model.schema[UNTIL].steps == ("1 week", "1 day")
    drawn = written(model, model.sample(3000, 1))
    assert shares(drawn) == pytest.approx(shares(table), abs=0.06)
    days = pd.to_datetime(drawn[UNTIL], errors="coerce", format="%Y-%m-%d")
    assert (days.dt.dayofweek.dropna() > 4).mean() < 0.01
    assert days.max() < pd.Timestamp("2030-01-01")
    assert (written(model, model.sample(50, 1, given={UNTIL: NEVER}))[UNTIL] == NEVER).all()
    rows = table[table[UNTIL] == NEVER][:50]
    assert np.exp(model.log_likelihood(rows)[f"contributions.{UNTIL}"]).mean() > 0.1


def test_a_hard_rule_compares_never_as_a_date_beyond_all_others() -> None:
    table = contracts()
    table.loc[table[UNTIL] == NEVER, STATE] = "open"
    texts = (f"`{UNTIL}` != '{NEVER}' or {STATE} == 'open'", f"{SINCE} <= {UNTIL}")
    schema = {"rules": [{"rule": text, "keep": "hard"} for text in texts]}
    model = Synthesizer.fit(table, schema=schema, seed=0, settings=SHORT)
    drawn = written(model, model.sample(1000, 1))
    assert (drawn[STATE][drawn[UNTIL] == NEVER] == "open").all()
    assert shares(drawn)[0] == pytest.approx(shares(table)[0], abs=0.08)


def test_a_dash_is_an_empty_cell_beside_never() -> None:
    table = contracts()
    table[UNTIL] = table[UNTIL].replace("", "-")
    column = infer_schema(table).schema[UNTIL]
    assert (column.kind, column.maximum, column.missing.markers) == ("datetime", NEVER, ("-",))


def test_a_report_shows_never_in_a_bar_of_its_own(model: Synthesizer) -> None:
    table = parse_table(contracts(), model.schema)
    drawn = parse_table(model.sample(N, 1), model.schema)
    shown = column_shares(table, drawn, model.schema, UNTIL)
    assert shown["labels"][-2:] == [f"{NEVER} or more", "missing"]
    for place, share in zip((-2, -1), shares(contracts()), strict=True):
        assert shown["real"][place] == pytest.approx(share)
        assert shown["drawn"][place] == pytest.approx(share, abs=0.06)
