"""Likelihoods and anomalies of rows with all rows below them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import DatabaseSynthesizer, errors
from gcvae.linked.database_fit import DatabaseFit, typed_table
from gcvae.linked.infer_links import infer_database
from tests.gcvae.linked.shop import shop
from tests.lengths import first_of

Tables = dict[str, pd.DataFrame]
QUICK: dict[str, Any] = {"preset": "fast", "settings": {"max_steps": 60}, "progress": False}


@pytest.fixture(scope="module")
def model() -> DatabaseSynthesizer:
    return DatabaseSynthesizer.fit(shop(25), **QUICK | {"settings": {"max_steps": 30}})


@pytest.fixture(scope="module")
def whole(model: DatabaseSynthesizer) -> pd.DataFrame:
    """The scores of the customers it has learned from."""
    return model.score(shop(25))["customers"]


@pytest.fixture(scope="module")
def pairs() -> Tables:
    """Parents of two levels with up to three children, which share an effect."""
    rng = np.random.default_rng(0)
    u = rng.normal(size=400)
    of = np.repeat(np.arange(400), rng.integers(0, 4, 400))
    level = np.where(u + rng.normal(size=400) > 0, "x", "y")
    own = np.where(u[of] + 0.5 * rng.normal(size=len(of)) > 0, "p", "q")
    return {
        "parents": pd.DataFrame({"id": np.arange(400), "a": level}),
        "children": pd.DataFrame(
            {"parent_id": of, "c": own, "d": np.where(rng.random(len(of)) < 0.3, "k", "l")}
        ),
    }


@pytest.fixture(scope="module")
def of_pairs(pairs: Tables) -> DatabaseSynthesizer:
    return DatabaseSynthesizer.fit(pairs, **QUICK)


def all_households(most: int) -> Tables:
    """Each parent with each set of at most so many children."""
    cells = list(itertools.product("pq", "kl"))
    sets = [s for k in range(most + 1) for s in itertools.combinations_with_replacement(cells, k)]
    parents, children = [], []
    for number, (a, rows) in enumerate(itertools.product("xy", sets)):
        parents.append((number, a))
        children += [(number, *row) for row in rows]
    return {
        "parents": pd.DataFrame(parents, columns=["id", "a"]),
        "children": pd.DataFrame(children, columns=["parent_id", "c", "d"]),
    }


def test_the_masses_of_all_households_add_up_to_one_and_are_those_that_are_drawn(
    of_pairs: DatabaseSynthesizer,
) -> None:
    households = all_households(3)
    scores = of_pairs.log_likelihood(households, draws=64)["parents"]
    assert np.exp(scores).sum() == pytest.approx(1.0, abs=0.03)  # the error of 64 draws
    drawn = of_pairs.sample(parents=10_000, seed=3)
    assert 0.5 * np.abs(shares(drawn) - shares(households, np.exp(scores))).sum() < 0.06


def shares(tables: Tables, weights: Any = None) -> pd.Series[Any]:
    """The share of each household, by its cells."""
    children, parents = tables["children"], tables["parents"]
    cells = (children["c"] + children["d"]).groupby(children["parent_id"])
    said = cells.agg(lambda found: ",".join(sorted(found))).reindex(parents["id"]).fillna("")
    keys = parents["a"].to_numpy() + ":" + said.to_numpy()
    weights = np.full(len(keys), 1.0 / len(keys)) if weights is None else np.asarray(weights)
    every = all_households(3) if len(keys) > 100 else None
    index = sorted(set(keys)) if every is None else sorted(set(shares_of(every)))
    return pd.Series(weights).groupby(keys).sum().reindex(index).fillna(0.0)


def shares_of(tables: Tables) -> list[str]:
    """The cells of each household."""
    return list(shares(tables).index)


def distance(fitted: DatabaseSynthesizer, unknown: Tables, of_levels: list[Tables]) -> pd.DataFrame:
    """How far log p of households is from that of the same with each level in their unknown cell,
    and the most that the error of the draws explains."""
    found, *each = (fitted.score(tables, draws=64)["parents"] for tables in (unknown, *of_levels))
    apart = found["log_likelihood"] - np.logaddexp(*(one["log_likelihood"] for one in each))
    error = sum(one["standard_error"] for one in (found, *each))
    return pd.DataFrame({"apart": apart.abs(), "most": 4 * error + 0.1})


def test_an_unknown_cell_has_the_masses_of_all_its_levels(of_pairs: DatabaseSynthesizer) -> None:
    households = all_households(2)
    parents, children = households["parents"], households["children"]
    are_first = ~children.duplicated("parent_id")
    has_rows = parents["id"].isin(children["parent_id"])

    def with_parent(level: str | None) -> Tables:
        return households | {"parents": parents.assign(a=level)}

    def with_child(column: str, level: str | None) -> Tables:
        cells = children[column].mask(are_first, level)
        return households | {"children": children.assign(**{column: cells})}

    far = distance(of_pairs, with_parent(None), [with_parent("x"), with_parent("y")])
    assert (far["apart"] < far["most"]).all(), far
    assert far["apart"].median() < 0.1
    for column, levels in first_of(("c", "pq"), ("d", "kl")):
        each = [with_child(column, level) for level in levels]
        far = distance(of_pairs, with_child(column, None), each)[has_rows]
        assert (far["apart"] < far["most"]).all(), far
        assert far["apart"].median() < 0.15


@pytest.mark.slow
def test_an_unknown_cell_of_a_sequence_has_the_masses_of_all_its_levels() -> None:
    """A row repeats the level of the row before it in nine of ten cases."""
    rng = np.random.default_rng(0)
    of, rank = np.repeat(np.arange(300), 3), np.tile(np.arange(3), 300)
    turns = pd.Series(rng.random(900) < np.where(rank == 0, 0.5, 0.1))
    is_p = turns.groupby(of).cumsum() % 2 == 0
    seen = pd.Timestamp("2024-01-01") + pd.to_timedelta(7 * rank, unit="D")
    parents = pd.DataFrame({"id": np.arange(300), "a": rng.choice(["x", "y"], 300)})
    children = pd.DataFrame({"parent_id": of, "c": np.where(is_p, "p", "q"), "seen": seen})
    tables = {"parents": parents, "children": children}
    fitted = DatabaseSynthesizer.fit(tables, preset="fast", progress=False)
    assert fitted.schema["children"].order == "seen"
    few = children[of < 12]

    def with_first(level: str | None) -> Tables:
        cells = few["c"].mask(~few.duplicated("parent_id"), level)
        return {"parents": parents[:12], "children": few.assign(c=cells)}

    far = distance(fitted, with_first(None), [with_first("p"), with_first("q")])
    assert (far["apart"] < far["most"]).all(), far
    assert far["apart"].median() < 0.15


def users_and_visits(n: int, seed: int) -> Tables:
    """Users and their visits, which share an effect."""
    rng = np.random.default_rng(seed)
    u, of = rng.normal(size=n), np.repeat(np.arange(n), rng.poisson(3, n))
    plan = np.where(u + rng.normal(size=n) > 0, "free", "paid")
    x = u[of] + (plan[of] == "free") + rng.normal(size=len(of))
    visits = {"user_id": of, "page": np.where(x > 0.5, "home", "shop")}
    visits |= {"pages": np.exp(0.5 * u[of] + rng.normal(size=len(of))).round(1)}
    users = {"id": np.arange(n), "plan": plan, "age": (40 + 8 * rng.normal(size=n)).round()}
    return {"users": pd.DataFrame(users), "visits": pd.DataFrame(visits)}


@pytest.mark.slow
def test_p_values_of_households_with_unknown_cells_are_calibrated() -> None:
    fitted = DatabaseSynthesizer.fit(
        users_and_visits(800, 0), preset="fast", progress=False, settings={"held_out_share": 0.4}
    )
    rng, unseen = np.random.default_rng(2), users_and_visits(800, 1)
    blank = {
        name: frame.mask(
            pd.DataFrame(rng.random(frame.shape) < 0.1).set_axis(frame.columns, axis=1)
            & ~frame.columns.isin(["id", "user_id"])
        )
        for name, frame in unseen.items()
    }
    assert blank["visits"]["page"].isna().mean() > 0.05
    found = fitted.score(blank, draws=2)["users"]
    assert np.isfinite(found["log_likelihood"]).all()
    whole = fitted.anomalies(unseen)["users"]["anomaly"]
    for share in (0.05, 0.1, 0.3):
        assert abs((found["anomaly"] <= share).mean() - share) < 0.06
        assert abs((found["anomaly"] <= share).mean() - (whole <= share).mean()) < 0.03


def test_an_unknown_cell_breaks_no_relation(
    model: DatabaseSynthesizer, whole: pd.DataFrame
) -> None:
    tables = shop(25)
    of_ninth, of_seventh = (tables["orders"].index % n == 0 for n in (9, 7))
    orders = tables["orders"].assign(
        country=tables["orders"]["country"].mask(of_ninth),
        total=tables["orders"]["total"].mask(of_seventh),
    )
    found = model.score(tables | {"orders": orders}, draws=4)["customers"]
    apart = found["log_likelihood"] - whole["log_likelihood"]
    assert apart.min() > np.log(0.01)  # a wrong total costs more, and a wrong copy
    assert (found["anomaly"] > 0.01).all()


def test_households_of_three_tables_have_scores_after_save_and_load(
    model: DatabaseSynthesizer, whole: pd.DataFrame, tmp_path: Any
) -> None:
    path = tmp_path / "shop.gcvae"
    model.save(path)
    tables, scores = shop(25), whole["log_likelihood"]
    assert np.isfinite(scores).all()
    assert len(scores) == len(tables["customers"])
    again = DatabaseSynthesizer.load(path).log_likelihood(shuffled(tables))["customers"]
    # Draws differ with the order of rows.
    assert np.corrcoef(scores, again.sort_index())[0, 1] > 0.99


def shuffled(tables: Tables) -> Tables:
    """The same rows and columns in another order."""
    return {
        name: frame.sample(frac=1.0, random_state=1)[list(frame.columns[::-1])]
        for name, frame in tables.items()
    }


def test_a_customer_with_the_orders_of_others_is_less_likely(
    model: DatabaseSynthesizer, whole: pd.DataFrame
) -> None:
    tables, own = shop(25), whole["log_likelihood"]
    ids = tables["customers"]["customer_id"]
    swapped = dict(zip(ids, np.roll(ids, 1), strict=True))
    orders = tables["orders"].assign(customer_id=tables["orders"]["customer_id"].map(swapped))
    other = model.log_likelihood(tables | {"orders": orders}, draws=4)["customers"]
    assert own.mean() > other.mean() + 2.0


def test_a_planted_order_is_the_oddest_of_all(model: DatabaseSynthesizer) -> None:
    tables = shop(25)
    orders, is_late = tables["orders"], np.arange(len(tables["orders"])) == 10
    days = pd.Series(pd.to_timedelta(np.where(is_late, 400, 0), unit="D"))
    orders = orders.assign(shipped=orders["shipped"] + days)
    tables["orders"] = orders.set_axis(orders["order_id"].astype(str), axis=0)
    found = model.anomalies(tables)["customers"]
    first = found.sort_values("anomaly").iloc[0]
    where = first["odd_table"], first["odd_row"], first["odd_cell"]
    assert where == ("orders", str(orders["order_id"].iloc[10]), "shipped")
    oddest = tables["customers"]["customer_id"].iloc[int(np.argmin(found["anomaly"]))]
    assert oddest == orders["customer_id"].iloc[10]


def test_a_total_that_is_none_is_named(model: DatabaseSynthesizer, whole: pd.DataFrame) -> None:
    tables = shop(25)
    more = np.where(np.arange(len(tables["orders"])) == 3, 5.0, 0.0)
    tables["orders"] = tables["orders"].assign(total=tables["orders"]["total"] + more)
    found = model.score(tables, draws=4)["customers"]
    row = found[(found["odd_cell"] == "total") & (found["odd_row"] == 3)]
    assert len(row) == 1
    scores = found["log_likelihood"]
    assert scores.loc[row.index[0]] < whole["log_likelihood"][row.index[0]] - 3


def test_an_entity_with_two_countries_is_impossible() -> None:
    rng = np.random.default_rng(1)
    of = np.repeat(np.arange(60), 4)
    visits = pd.DataFrame(
        {
            "customer_id": [f"K{i:03d}" for i in of],
            "country": rng.choice(["DE", "FR"], 60)[of],
            "plan": rng.choice(["free", "paid"], 60)[of],
            "pages": rng.integers(1, 9, len(of)),
        }
    )
    fitted = DatabaseSynthesizer.fit({"visits": visits}, **QUICK | {"settings": {"max_steps": 20}})
    other = visits["country"].map({"DE": "FR", "FR": "DE"})
    is_wrong = np.arange(len(visits)) == 41
    wrong = visits.assign(country=np.where(is_wrong, other, visits["country"]))
    blank = visits.assign(country=visits["country"].mask(is_wrong))
    [whole], [scores] = (
        fitted.log_likelihood({"visits": rows}).values() for rows in (visits, blank)
    )
    pd.testing.assert_series_equal(scores, whole)
    key = visits["customer_id"].iloc[41]
    [scores] = fitted.log_likelihood({"visits": wrong}).values()
    assert scores[scores == -np.inf].index.tolist() == [key]
    [found] = fitted.anomalies({"visits": wrong}).values()
    assert found.loc[key, "anomaly"] == 0.0
    assert found.loc[key, "odd_cell"] == "country"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("orders"), "there is no table 'orders'"),
        (lambda t: t.update(other=t["lines"]), "no table 'other'"),
        (lambda t: t.update(orders=t["orders"].drop(columns="channel")), "'channel' is absent"),
        (lambda t: t["orders"].__setitem__("customer_id", "nobody"), "customer_id"),
    ],
)
def test_what_is_no_such_database_is_refused(
    model: DatabaseSynthesizer, change: Any, message: str
) -> None:
    tables = shop(25)
    change(tables)
    with pytest.raises(errors.TableError, match=message):
        model.log_likelihood(tables)


@pytest.mark.parametrize("method", ["log_likelihood", "anomalies", "impute", "report"])
@pytest.mark.parametrize("table", ["orders", "products"])
def test_a_column_that_the_model_does_not_know_is_refused_by_table_and_name(
    model: DatabaseSynthesizer, method: str, table: str
) -> None:
    tables = shop(25)
    tables[table] = tables[table].assign(colours=1)
    with pytest.raises(errors.UnknownColumnError) as caught:
        getattr(model, method)(tables)
    [problem] = caught.value.problems
    assert (problem.pointer, problem.column) == (f"/tables/{table}", "colours")
    assert problem.suggestion == ("colour" if table == "products" else None)
    with pytest.raises(errors.TableError, match="the tables are DataFrame"):
        getattr(model, method)(tables[table])


def test_differential_privacy_by_row_is_refused() -> None:
    settings = {"differential_privacy": {"epsilon": 3, "delta": 1e-6}}
    with pytest.raises(errors.SettingError, match="a person counts with all rows"):
        DatabaseSynthesizer.fit(shop(25), preset="fast", progress=False, settings=settings)


def test_sequences_go_on_after_their_last_row(model: DatabaseSynthesizer) -> None:
    tables = shuffled(shop(25))
    found = model.extend(tables, 3, seed=1)
    assert set(found) == {"orders"}
    later, orders = found["orders"], tables["orders"]
    assert list(later.columns) == list(shop(25)["orders"].columns)
    assert (later.groupby("customer_id").size() == 3).all()
    assert set(later["customer_id"]) == set(orders["customer_id"])
    both = pd.concat([orders, later]).sort_values("ordered")
    gaps = both.groupby("customer_id")["ordered"].diff().dropna().dt.days
    assert gaps.isin([7, 14]).mean() > 0.95
    last = orders.groupby("customer_id")["ordered"].max()
    assert (later["ordered"] > last[later["customer_id"]].to_numpy()).all()
    countries = tables["customers"].set_index("customer_id")["country"]
    assert (later["country"] == countries[later["customer_id"]].to_numpy()).all()
    assert (later["shipped"] >= later["ordered"]).all()
    again = model.extend(tables, 3, seed=1)["orders"]
    pd.testing.assert_frame_equal(later, again)
    with pytest.raises(errors.SettingError, match="rows"):
        model.extend(tables, 0)


def clinic() -> Tables:
    """Patients, doctors, and visits in time of which some have no doctor."""
    rng = np.random.default_rng(4)
    of = np.repeat(np.arange(80), rng.integers(1, 6, 80))
    days = pd.Series(rng.choice([7, 30], len(of))).groupby(of).cumsum()
    doctors = [f"D{i:02d}" for i in range(25)]
    chosen = rng.choice(doctors, len(of)).astype(object)
    return {
        "patients": pd.DataFrame(
            {"patient_id": [f"P{i:03d}" for i in range(80)], "age": rng.integers(18, 90, 80)}
        ),
        "doctors": pd.DataFrame({"doctor_id": doctors, "ward": rng.choice(["A", "B"], 25)}),
        "visits": pd.DataFrame(
            {
                "patient_id": [f"P{i:03d}" for i in of],
                "doctor_id": np.where(rng.random(len(of)) < 0.1, None, chosen),
                "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(days, unit="D"),
                "fee": np.round(rng.uniform(10, 90, len(of)), 2),
            }
        ),
    }


@pytest.mark.parametrize("form", first_of("frames", "files"))
def test_a_reference_is_missing_as_often_as_in_the_table(form: str, tmp_path: Any) -> None:
    tables: dict[str, Any] = dict(clinic())
    if form == "files":
        for name, frame in clinic().items():
            frame.to_csv(tmp_path / f"{name}.csv", index=False)
            tables[name] = tmp_path / f"{name}.csv"
    fitted = DatabaseSynthesizer.fit(tables, **QUICK | {"settings": {"max_steps": 10}})
    keys = {k.table for k in fitted.schema["visits"].foreign_keys}
    assert keys == {"patients", "doctors"}
    drawn = fitted.sample(scale=4.0, seed=1)
    missing = clinic()["visits"]["doctor_id"].isna().mean()
    assert drawn["visits"]["doctor_id"].isna().mean() == pytest.approx(missing, abs=0.06)
    assert drawn["visits"]["doctor_id"].dropna().isin(drawn["doctors"]["doctor_id"]).all()
    if form == "frames":
        late = clinic()
        is_late = np.arange(len(late["visits"])) == 12
        seen = late["visits"]["seen"].mask(is_late, pd.Timestamp("2035-01-01"))
        late["visits"] = late["visits"].assign(seen=seen)
        first = fitted.anomalies(late)["patients"].sort_values("anomaly").iloc[0]
        assert (first["odd_table"], first["odd_row"]) == ("visits", 12)
        empty = {name: frame.iloc[:0] for name, frame in clinic().items()}
        assert not len(fitted.log_likelihood(empty)["patients"])


def test_held_out_households_are_whole_and_the_same_in_every_table() -> None:
    tables = shop(40)
    links = infer_database(tables)
    typed, schemas = {}, {}
    for name, frame in tables.items():
        schemas[name], typed[name] = typed_table(name, frame, links[name])
    fit = DatabaseFit(links, schemas, typed, "fast", {}, 0, "cpu", False, {})
    customers, orders, lines = (fit.held_out[name] for name in ("customers", "orders", "lines"))
    assert customers is not None
    assert customers.sum() == 4
    ids = set(tables["customers"]["customer_id"][customers])
    assert orders is not None
    assert (tables["orders"]["customer_id"].isin(ids) == orders).all()
    assert lines is not None
    numbers = set(tables["orders"]["order_id"][orders])
    assert (tables["lines"]["order_id"].isin(numbers) == lines).all()


@pytest.mark.slow
def test_unseen_households_with_new_levels_are_as_odd_as_held_out_ones() -> None:
    """Every other household has a level that no other has."""
    rng = np.random.default_rng(0)

    def households(n: int, first: int) -> Tables:
        of = np.repeat(np.arange(n), 3)
        level = rng.integers(0, 9, len(of))
        level[(np.arange(len(of)) % 3 == 0) & (of % 2 == 0)] = 0
        own = (np.arange(len(of)) % 3 == 0) & (of % 2 == 0)
        return {
            "users": pd.DataFrame({"id": np.arange(n), "x": rng.normal(size=n)}),
            "visits": pd.DataFrame(
                {
                    "user_id": of,
                    "action": np.where(own, first + of, level),
                    "y": rng.normal(size=len(of)),
                }
            ),
        }

    columns = [{"name": "action", "kind": "categorical"}]
    schema = {"tables": {"visits": {"columns": columns}}}
    fitted = DatabaseSynthesizer.fit(
        households(300, 1000), schema=schema, preset="fast", progress=False
    )
    found = fitted.anomalies(households(300, 5000))["users"]["anomaly"]
    assert abs((found <= 0.3).mean() - 0.3) < 0.2
    assert (found <= 0.05).mean() < 0.15


@pytest.mark.slow
def test_scores_have_errors_that_fall_with_the_draws(model: DatabaseSynthesizer) -> None:
    tables = shop(25)
    few, many = (model.score(tables, draws=n)["customers"] for n in (4, 32))
    assert list(few.columns[:2]) == ["log_likelihood", "standard_error"]
    pd.testing.assert_series_equal(
        few["log_likelihood"], model.log_likelihood(tables, draws=4)["customers"]
    )
    pd.testing.assert_frame_equal(few[few.columns[2:]], model.anomalies(tables)["customers"])
    assert many["standard_error"].mean() < 0.6 * few["standard_error"].mean()
    others = model.score(tables, draws=32, seed=1)["customers"]
    apart = (many["log_likelihood"] - others["log_likelihood"]).abs()
    errors = np.hypot(many["standard_error"], others["standard_error"])
    assert (apart <= 4 * errors).mean() > 0.9
    seen: list[float] = []
    model.score(tables, progress=seen.append)
    assert seen[-1] == 1.0
