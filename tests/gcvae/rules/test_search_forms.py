"""The forms of rules that business tables have, each found in a table that has it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.known_truth.independent_columns import draw_independent
from benchmarks.known_truth.priced import draw_prices, draw_stones
from gcvae import infer_schema, parse_table
from gcvae.rules.reduction import Reduction
from tests.gcvae.rules.test_search import found_in
from tests.lengths import first_of

N = 1_200


def random_of(seed: int) -> np.random.Generator:
    """Draws of a seed."""
    return np.random.default_rng(seed)


def test_eight_rules_of_few_prices_are_found_the_natural_way_round() -> None:
    assert {
        "sale_price == price - discount",
        "total == quantity * sale_price",
        "margin == sale_price - cost",
        "margin_pct == 100 * margin / sale_price",
        "saved == discount * quantity",
        "list_total == price * quantity",
        "profit == quantity * margin",
    } <= set(found_in(draw_prices(3, 1_000)))


def test_products_with_rates_are_found_through_each_other() -> None:
    random = random_of(1)
    price = np.round(random.lognormal(3, 0.6, N), 2)
    quantity = random.integers(1, 9, N)
    discount = random.choice([0, 5, 10, 30], N)
    rate = random.choice([0.0, 0.07, 0.19], N)
    net = np.round(price * quantity * (1 - discount / 100), 2)
    gross = np.round(net * (1 + rate), 2)
    table = pd.DataFrame(
        {
            "unit price": price,
            "n": quantity,
            "off": discount,
            "net": net,
            "税": rate,
            "gross": gross,
        }
    ).map(lambda x: f"{x:.2f}")
    table[["n", "off"]] = np.stack([quantity, discount], axis=1)
    found = found_in(table.astype(str))
    assert found["net == `unit price` * n * (1 - off / 100)"].rule.share == 1.0
    assert found["gross == net * (1 + 税)"].rule.share == 1.0


def test_a_formula_or_its_most_frequent_number_is_found_and_restored() -> None:
    random = random_of(3)
    amount = np.round(random.gamma(2, 60, N) + 5, 2)
    is_promoted = random.random(N) < 0.3
    table = pd.DataFrame({"amount": amount, "discount": np.where(is_promoted, amount * 0.1, 0.0)})
    table["discount"] = table["discount"].round(2)
    assert found_in(table)["discount == amount / 10 or discount == 0"].rule.share == 1.0
    schema = infer_schema(table).schema
    typed = parse_table(table, schema)
    reduction = Reduction.of_table(typed, schema)
    reduced = reduction.reduce(typed)
    assert (reduced["discount"] == np.where(is_promoted, 0, -1)).mean() > 0.95  # others are ties
    assert reduction.restore(reduced)["discount"].tolist() == table["discount"].tolist()
    swapped = reduced.assign(amount=reduced["amount"].to_numpy()[::-1])
    restored = reduction.restore(swapped)
    off = np.abs(restored["discount"] - restored["amount"] / 10)
    assert ((off < 0.0051) | (restored["discount"] == 0)).all()


def test_days_after_a_date_with_a_clock_are_counted_from_its_day() -> None:
    random = random_of(4)
    day = np.datetime64("2024-01-01") + random.integers(0, 180, N)
    term, plan = random.integers(3, 30, N), random.choice(["S", "M", "L"], N)
    of_plan = pd.Series(plan).map({"S": 30, "M": 60, "L": 90}).to_numpy()
    table = pd.DataFrame(
        {
            "ordered": day + random.integers(8 * 60, 20 * 60, N).astype("timedelta64[m]"),
            "due": day + 14,
            "end": day + term,
            "term": term,
            "until": day + of_plan,
            "plan": plan,
        }
    )
    found = found_in(table)
    assert {
        "due == date(ordered) + 14",
        "term == end - date(ordered)",
        "until == date(ordered) + extra[plan]",
    } <= set(found)
    tables = found["until == date(ordered) + extra[plan]"].rule.tables
    assert tables == {"extra": {"S": 30, "M": 60, "L": 90}}


def test_what_nearly_holds_is_found_with_its_constant() -> None:
    found = found_in(draw_stones(3, 3_000))
    assert "depth ≈ 200 * (z / (x + w)) ± 0.1" in found


def test_names_of_parts_ages_truths_and_rates_are_looked_up() -> None:
    random = random_of(2)
    days = pd.Series(pd.Timestamp("2023-01-01") + pd.to_timedelta(random.integers(0, 700, N), "D"))
    born = pd.Series(
        pd.Timestamp("1950-01-01") + pd.to_timedelta(random.integers(0, 18_000, N), "D")
    )
    day = pd.Timestamp("2025-06-30")
    birthday_past = (born.dt.month * 100 + born.dt.day) <= 630
    grade = random.choice(["G1", "G2", "G3"], N)
    salary = random.integers(200, 900, N) * 100
    rates = pd.Series(grade).map({"G1": 0.02, "G2": 0.05, "G3": 0.125}).to_numpy()
    left = np.where(random.random(N) < 0.3, days.dt.strftime("%Y-%m-%d"), "")
    cold = random.normal(8, 6, N).round(1)
    table = pd.DataFrame(
        {
            "seen": days.dt.strftime("%Y-%m-%d"),
            "Tag": days.dt.dayofweek.map(
                dict(enumerate(("Mo", "Di", "Mi", "Do", "Fr", "Sa", "So")))
            ),
            "weekday": days.dt.day_name(),
            "half": "Q" + days.dt.quarter.astype(str),
            "born": born.dt.strftime("%d.%m.%Y"),
            "age": (day.year - born.dt.year - ~birthday_past).astype(str),
            "grade": grade,
            "salary": salary.astype(str),
            "bonus": [f"{x:.2f}" for x in salary * rates],
            "left": left,
            "active": np.where(left == "", "true", "false"),
            "temp": [f"{x:.1f}" for x in cold],
            "frost": np.where(cold > 2, "no", "yes"),
        }
    )
    found = found_in(table)
    assert found["weekday == weekday(seen)"].rule.share == 1.0
    tables = {words: f.rule.tables for words, f in found.items()}
    assert tables["Tag == name[weekday(seen)]"]["name"]["Thursday"] == "Do"
    assert tables["half == name[quarter(seen)]"]["name"]["3"] == "Q3"
    assert tables["bonus == rate[grade] * salary"]["rate"] == {"G1": 0.02, "G2": 0.05, "G3": 0.125}
    assert found["active == is_missing(left)"].rule.share == 1.0
    assert found['age == years(born, "2025-06-30")'].rule.share == 1.0
    assert any(words.startswith("frost == (temp < ") for words in found)


def test_equality_in_a_share_of_the_rows_is_found_and_equal_zeros_are_none() -> None:
    random = random_of(3)
    bill = np.where(random.random(N) < 0.2, 0, random.integers(1, 90_000, N))
    paid = np.where(random.random(N) < 0.15, bill, random.integers(0, 30_000, N))
    paid = np.where(random.random(N) < 0.3, 0, paid)
    other = np.where(random.random(N) < 0.6, 0, random.integers(1, 90_000, N))
    found = found_in(pd.DataFrame({"bill": bill, "paid": paid, "other": other}).astype(str))
    assert set(found) == {"paid == bill"}
    assert 0.1 < (found["paid == bill"].rule.share or 0) < 0.25


def test_an_order_of_dates_of_few_rows_is_found_where_every_one_keeps_it() -> None:
    random = random_of(4)
    start = pd.Series(
        pd.Timestamp("2015-01-01") + pd.to_timedelta(random.integers(0, 3_000, 400), "D")
    )
    end = start + pd.to_timedelta(random.integers(1, 2_000, 400), "D")
    is_known = random.random(400) < 0.17
    table = pd.DataFrame(
        {
            "hired": start.dt.strftime("%Y-%m-%d"),
            "left": end.dt.strftime("%Y-%m-%d").where(is_known, ""),
        }
    )
    assert "left >= hired" in found_in(table)


@pytest.mark.parametrize("seed", first_of(1, 2, 4))
def test_no_rule_is_found_between_independent_columns(seed: int) -> None:
    assert found_in(draw_independent(seed)) == {}


def test_days_of_three_columns_are_days_of_their_months() -> None:
    random = random_of(2)
    dates = pd.Timestamp("2019-01-01") + pd.to_timedelta(random.integers(0, 2_000, N), unit="D")
    parts = pd.DataFrame({"年": dates.year, "of month": dates.day, "month": dates.month})
    parts["cost"] = random.gamma(2, 30, N).round(2)
    found = found_in(parts.astype(str))
    assert found["`of month` <= days_in_month(年, month)"].rule.share == 1.0
    parts["of month"] = random.permutation(parts["of month"])
    assert not found_in(parts.astype(str))


def test_minimum_and_maximum_charges_are_found_with_their_bound() -> None:
    random = random_of(5)
    weight, rate = random.integers(1, 40, N), random.choice([1.5, 2.0, 2.75, 4.2], N)
    base = random.choice([20.0, 25.0, 30.0, 35.0], N)
    table = pd.DataFrame({"weight": weight, "rate": rate, "base": base, "hours": 40 - weight})
    table["fee"] = np.maximum(base, weight * rate).round(2)
    table["capped"] = np.minimum(60, weight * rate).round(2)
    found = found_in(table.assign(hours=random.integers(0, 60, N)).astype(str))
    assert found["fee == max(base, weight * rate)"].rule.share == 1.0
    assert found["capped == min(60, weight * rate)"].rule.share == 1.0


def test_a_bound_with_more_exceptions_is_none() -> None:
    random = random_of(6)
    weight, rate, base = (random.integers(2, 30, N) for _ in range(3))
    fee = np.maximum(base, weight * rate // 9 * 9)
    fee = np.where(random.random(N) < 0.02, fee + 7, np.maximum(base * 9, weight * rate))
    table = pd.DataFrame({"weight": weight, "rate": rate, "base": 9 * base, "fee": fee})
    assert not any("max" in words or "min(" in words for words in found_in(table.astype(str)))


def test_levels_that_are_brackets_of_a_number_are_computed_from_it() -> None:
    random = random_of(7)
    parts = random.integers(0, 35, (3, N))
    points = parts.sum(axis=0)
    table = pd.DataFrame(dict(zip("abc", parts, strict=True)) | {"points": points}).astype(str)
    table["grade"] = np.array(list("FDCBA"))[np.digitize(points, [30, 45, 60, 80])]
    found = found_in(table)
    grade = found["grade == name[bracket(points, 30, 45, 60, 80)]"].rule
    assert (grade.share, grade.tables["name"]) == (1.0, dict(zip("01234", "FDCBA", strict=True)))
    mixed = np.where((points > 50) & (points < 55), "A", table["grade"])
    words = found_in(table.assign(grade=mixed))
    assert not any("bracket" in word for word in words)


def test_columns_of_which_only_one_has_a_value_are_found() -> None:
    random = random_of(8)
    is_firm, names = random.random(N) < 0.4, random.choice(["x", "y", "z"], N)
    table = pd.DataFrame(
        {
            "person": np.where(is_firm, "", names),
            "firm": np.where(is_firm, random.choice(["x", "y", "z"], N), ""),
            "gift": np.where(~is_firm | (random.random(N) < 0.5), "", names),
            "free": np.where(random.random(N) < 0.3, "", random.choice(["x", "y"], N)),
        }
    )
    assert {finding.rule.text for finding in found_in(table).values()} == {
        "is_missing(firm) != is_missing(person)",
        "is_missing(gift) if is_missing(firm)",
    }
    either = table.assign(firm=table["firm"].mask(random.random(N) < 0.3, ""))[["person", "firm"]]
    [found] = found_in(either).values()
    assert (found.rule.text, found.rule.share) == ("is_missing(firm) if not is_missing(person)", 1)


def payslips(n: int, seed: int) -> pd.DataFrame:
    """Pay with overtime, two deductions and a net amount; with the names of a German payroll."""
    random = random_of(seed)
    hours = random.choice([80, 100, 120, 160], n)
    rate = random.choice([14.5, 18.75, 25.4, 38.9], n)
    overtime = np.where(random.random(n) < 0.3, random.integers(1, 25, n), 0)
    bonus = np.where(random.random(n) < 0.25, np.round(random.gamma(2, 150, n), 2), 0)
    gross = np.round(rate * hours + 1.25 * rate * overtime + bonus, 2)
    status = random.choice(["I", "III", "V"], n)
    share = pd.Series(status).map({"I": 0.21, "III": 0.14, "V": 0.31}).to_numpy()
    tax, social = np.round(gross * share, 2), np.round(gross * 0.2025, 2)
    return pd.DataFrame(
        {
            "Netto": np.round(gross - tax - social, 2),
            "Stunden": hours,
            "Satz": rate,
            "Überstunden": overtime,
            "Bonus": bonus,
            "Brutto": gross,
            "Klasse": status,
            "Steuer": tax,
            "SV": social,
        }
    )


def test_what_levels_say_of_missing_cells_and_levels_that_never_agree_are_found() -> None:
    random = np.random.default_rng(3)
    status = random.choice(["active", "left", "retired", "on leave"], N, p=[0.5, 0.2, 0.2, 0.1])
    gone = np.isin(status, ["left", "retired"])
    contact = random.choice(3, N)
    sites, at = np.array(["Lyon", "Metz", "Brest", "Lille"]), random.integers(0, 4, N)
    frame = pd.DataFrame(
        {
            "status": status,
            "end": np.where(gone, random.integers(1, 9_000, N).astype(str), ""),
            "reason": np.where(gone & (random.random(N) < 0.7), random.choice(list("abc"), N), ""),
            "mail": np.where(contact != 0, random.choice(["own", "work"], N), ""),
            "phone": np.where(contact != 1, random.choice(["own", "work"], N), ""),
            "from": sites[at],
            "to": sites[(at + random.integers(1, 4, N)) % 4],
            "other": random.choice(["x", "y", "z"], N),
        }
    )
    assert set(found_in(frame)) == {
        "is_missing(end) == (status in ('active', 'on leave'))",
        "reason is missing wherever end is",
        "not is_missing(phone) if is_missing(mail)",
        "`from` != to",
    }


def test_flags_of_two_columns_and_of_two_conditions_are_found() -> None:
    random = np.random.default_rng(4)
    asked = pd.Timestamp("2023-01-01") + pd.to_timedelta(random.integers(0, 500, N), unit="D")
    sent = asked + pd.to_timedelta(random.integers(0, 30, N), unit="D")
    due = asked + pd.to_timedelta(random.integers(5, 25, N), unit="D")
    frame = pd.DataFrame(
        {
            "due": due.strftime("%Y-%m-%d"),
            "sent": sent.strftime("%Y-%m-%d"),
            "late": np.where(sent > due, "yes", "no"),
            "hours": random.integers(1, 9, N).astype(str),
            "score": random.integers(0, 101, N),
            "absent": random.poisson(9, N),
            "plan": random.choice(["basic", "plus", "pro"], N),
        }
    )
    frame["passed"] = np.where((frame["score"] >= 50) & (frame["absent"] <= 12), "true", "false")
    frame["cheap"] = np.where((frame["plan"] != "pro") & (frame["score"] < 30), "cheap", "dear")
    found = found_in(frame.astype(str))
    assert set(found) == {
        "late == (due < sent)",
        "passed == (score >= 50 and absent <= 12)",
        "cheap == name[score <= 29 and plan != 'pro']",
    }
    noisy = np.where(random.random(N) < 0.02, "true", frame["passed"])  # no two conditions hold
    assert not any(
        name.startswith("passed") for name in found_in(frame.assign(passed=noisy).astype(str))
    )


def test_rates_by_brackets_and_dates_by_levels_and_months_are_found() -> None:
    random = np.random.default_rng(5)
    start = pd.Timestamp("2022-01-01") + pd.to_timedelta(random.integers(0, 900, N), unit="D")
    speed = random.choice(["slow", "usual", "fast"], N)
    term = random.choice(["quarter", "half", "year"], N)
    years, amount = random.integers(1, 9, N), random.integers(500, 60_000, N) / 10
    months = pd.Series(term).map({"quarter": 3, "half": 6, "year": 12})

    def later(n: pd.Series | np.ndarray) -> pd.Series:
        return pd.Series([d + pd.DateOffset(months=int(m)) for d, m in zip(start, n, strict=True)])

    due = start + pd.to_timedelta(
        pd.Series(speed).map({"slow": 9, "usual": 5, "fast": 2}), unit="D"
    )
    rate = np.array([0.0, 0.05, 0.1])[np.searchsorted([1_000, 2_500], amount, side="right")]
    frame = pd.DataFrame(
        {
            "start": start.strftime("%Y-%m-%d"),
            "speed": speed,
            "due": due.dt.strftime("%Y-%m-%d"),
            "term": term,
            "end": (later(months) - pd.Timedelta(days=1)).dt.strftime("%Y-%m-%d"),
            "years": years,
            "expiry": later(12 * years).dt.strftime("%Y-%m-%d"),
            "amount": amount,
            "discount": np.round(rate * amount + 1e-9, 2),
        }
    )
    found = found_in(frame.astype(str))
    rules = (
        "due == start + extra[speed]",
        "end == add_months(start, months[term]) - 1",
        "expiry == add_months(start, 12 * years)",
        "discount == rate[bracket(amount, 1000, 2500)] * amount",
    )
    assert set(rules) <= set(found)
    assert dict(found[rules[3]].rule.tables["rate"]) == {"0": 0.0, "1": 0.05, "2": 0.1}


def test_sums_of_products_and_of_columns_that_follow_from_each_other_are_found() -> None:
    found = found_in(payslips(2_000, 1).astype(str))
    assert {
        "Brutto == Stunden * Satz + 1.25 * Satz * Überstunden + Bonus",
        "SV == 0.2025 * Brutto",
        "Steuer == rate[Klasse] * Brutto",
        "Netto == Brutto - Steuer - SV",
    } <= set(found)


def test_a_total_of_seven_columns_is_found_among_parts_that_are_multiples_of_one_another() -> None:
    random = random_of(4)
    days = random.integers(1, 15, N)
    kilometres = random.integers(20, 900, N)
    parts = {
        "rent": days * 29.9,
        "cleaning": np.where(random.random(N) < 0.2, 35.0, 0.0),
        "insurance": days * 9.9,
        "distance": np.round(np.maximum(kilometres - 100, 0) * 0.25, 2),
        "fuel": np.round(random.gamma(2, 9, N), 2),
        "discount": np.round(random.random(N) * 12, 2),
    }
    signs = np.array([1, 1, 1, 1, 1, -1])
    total = np.round(np.stack([*parts.values()], axis=1) @ signs, 2)
    table = pd.DataFrame({"total": total, "km": kilometres, "days": days} | parts)
    assert "total == rent + cleaning + insurance + distance + fuel - discount" in found_in(
        table.round(2).astype(str)
    )


def test_days_that_are_added_to_a_date_are_found() -> None:
    random = random_of(5)
    first = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 700, N), "D")
    length = random.integers(1, 15, N)
    last = first + pd.to_timedelta(length - 1, "D")
    table = pd.DataFrame(
        {"first": first, "last": last, "days": length, "due": last + pd.Timedelta(days=14)}
    )
    assert {"days == last - first + 1", "due == last + 14"} <= set(found_in(table.astype(str)))
    texts = table.astype(str).mask(random.random(table.shape) < 0.1, "")
    assert {"days == last - first + 1", "due == last + 14"} <= set(found_in(texts))


def test_a_factor_that_is_zero_for_some_levels_is_looked_up() -> None:
    random = random_of(6)
    net = np.round(random.lognormal(4, 1, N), 2)
    country = random.choice(["US", "DE", "FR"], N, p=[0.5, 0.3, 0.2])
    tax = np.where(country == "US", np.round(net * 0.0725, 2), 0.0)
    table = pd.DataFrame({"country": country, "net": net, "tax": tax})
    assert "tax == rate[country] * net" in found_in(table.astype(str))


def test_a_price_of_two_levels_is_not_turned_into_its_cause() -> None:
    random = random_of(7)
    room = random.choice(["single", "double", "suite"], N)
    season = random.choice(["low", "high"], N)
    price = pd.Series(room).map({"single": 79.0, "double": 119.0, "suite": 249.0}).to_numpy()
    table = pd.DataFrame({"room": room, "season": season})
    table["price"] = np.round(price * np.where(season == "high", 1.3, 1.0), 2)
    found = found_in(table.astype(str))
    assert "room and season determine price" in found
    assert "price determines room" not in found


def test_a_factor_from_a_limit_of_another_column_on_is_found() -> None:
    random = random_of(8)
    days = random.integers(1, 20, N)
    rent = np.round(days * random.choice([29.9, 37.5, 58.0], N) + random.random(N) * 20, 2)
    discount = np.where(days >= 7, np.round(rent * 0.1, 2), 0.0)
    table = pd.DataFrame({"days": days, "rent": rent, "discount": discount})
    assert "discount == rate[days >= 7] * rent" in found_in(table.astype(str))


def test_a_fee_between_a_least_and_a_most_is_found() -> None:
    random = random_of(7)
    loan = np.round(random.lognormal(9.3, 1.0, N), -1)
    fee = np.clip(np.round(0.015 * loan, 2), 75, 600)
    found = found_in(
        pd.DataFrame({"loan": loan, "fee": fee, "rate": random.normal(5, 1, N).round(2)})
    )
    assert found["fee == min(600, max(75, 0.015 * loan))"].rule.share == 1.0


def test_levels_by_clusters_of_a_number_are_no_limits_of_it() -> None:
    random = random_of(4)
    cities = {"Milano": 45.46, "Roma": 41.9, "Napoli": 40.85, "Torino": 45.07}
    city = random.choice([*cities], N)
    lat = pd.Series(city).map(cities) + random.normal(0, 0.05, N)
    found = found_in(pd.DataFrame({"city": city, "lat": lat.clip(40.6).round(5).astype(str)}))
    assert not any("bracket" in words and words.startswith("city") for words in found)
    weight = random.gamma(2, 6, N).round(2)
    tier = pd.Series(np.searchsorted([5, 12, 20], weight, side="right")).map(
        dict(enumerate("abcd"))
    )
    found = found_in(pd.DataFrame({"tier": tier, "weight": weight.astype(str)}))
    assert "tier == name[bracket(weight, 5, 12, 20)]" in found
