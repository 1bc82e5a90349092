"""Dependencies of computed columns hold by a lookup table: a price by room and season."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer, infer_schema
from gcvae.errors import SchemaError

HARDLY = {"max_steps": 10, "evaluate_every_steps": 10}
PRICES = {
    ("single", "low"): 69.0, ("single", "high"): 89.0, ("double", "low"): 95.0,
    ("double", "high"): 129.0, ("suite", "low"): 219.0, ("suite", "high"): 310.0,
}  # fmt: skip


def bookings(n: int = 1_500) -> pd.DataFrame:
    random = np.random.default_rng(0)
    arrival = np.datetime64("2024-01-01", "s") + random.integers(0, 366, n) * np.timedelta64(1, "D")
    frame = pd.DataFrame(
        {"arrival": arrival, "room": random.choice(["single", "double", "suite"], n)}
    )
    is_high = frame["arrival"].dt.month.between(6, 9)
    frame["season"] = np.where(is_high, "high", "low")
    frame["price"] = prices(frame)
    frame["nights"] = random.geometric(0.3, n)
    frame["total"] = frame["price"] * frame["nights"]
    return frame


def seasons(rows: pd.DataFrame) -> list[str]:
    return ["high" if 6 <= month <= 9 else "low" for month in rows["arrival"].dt.month]


def prices(rows: pd.DataFrame) -> list[float]:
    return [PRICES[pair] for pair in zip(rows["room"], rows["season"], strict=True)]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return bookings()


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> Synthesizer:
    return Synthesizer.fit(frame, preset="fast", settings=HARDLY, seed=0)


def test_a_price_follows_from_a_room_and_a_computed_season(model: Synthesizer) -> None:
    drawn = Synthesizer.from_bytes(model.to_bytes()).sample(2_000, seed=1)
    assert (
        drawn["season"] == np.where(drawn["arrival"].dt.month.between(6, 9), "high", "low")
    ).all()
    assert drawn["price"].tolist() == prices(drawn)
    assert (drawn["total"] == drawn["price"] * drawn["nights"]).all()


def test_a_condition_on_the_price_selects_rooms(model: Synthesizer) -> None:
    drawn = model.sample(100, given={"price": 129.0}, seed=2)
    assert set(zip(drawn["room"], drawn["season"], strict=True)) == {("double", "high")}


def test_a_missing_price_is_the_one_of_the_table(frame: pd.DataFrame, model: Synthesizer) -> None:
    gaps = frame.head(60).assign(price=np.nan, total=np.nan)
    assert model.impute(gaps, seed=3)["price"].tolist() == prices(frame.head(60))


def test_a_row_with_another_price_is_impossible(frame: pd.DataFrame, model: Synthesizer) -> None:
    wrong = frame.head(2).copy()
    wrong.loc[0, ["price", "total"]] = [89.5, 89.5 * wrong.loc[0, "nights"]]
    scores = model.log_likelihood(wrong, draws=50)["log_likelihood"]
    assert np.isneginf(scores[0])
    assert np.isfinite(scores[1])


def test_a_lookup_by_two_keys_can_be_given(frame: pd.DataFrame) -> None:
    table = {" | ".join(pair): price for pair, price in PRICES.items()}
    rule = {"rule": "price == value[room, season]", "tables": {"value": table}}
    schema = {"rules": [rule], "find_rules": True}
    found = infer_schema(frame, schema)
    [price] = [one for one in found.schema.rules or () if one.column == "price"]
    assert price.share == 1.0
    wrong = rule | {"tables": {"value": table | {"single | middle": 5.0}}}
    with pytest.raises(SchemaError, match="has 'middle', no level of season"):
        infer_schema(frame, {"rules": [wrong]})
    alone = rule | {"tables": {"value": {"single": 5.0}}}
    with pytest.raises(SchemaError, match="not 2 levels each"):
        infer_schema(frame, {"rules": [alone]})


def test_a_level_that_is_not_in_the_table_may_have_any_value() -> None:
    """A rare product is not in the model; its own price is no evidence against its row."""
    random = np.random.default_rng(1)
    n, n_products = 6_000, 1_100
    price = np.exp(random.normal(3, 1, n_products)).round(2)
    of = np.minimum(random.integers(0, n_products, n), random.integers(0, n_products, n))
    frame = pd.DataFrame({"sku": [f"P{i:04d}" for i in of], "price": price[of]})
    frame["amount"] = random.gamma(2.0, 20.0, n).round(2)
    assert frame["price"].nunique() > 512, "too many for codes"
    model = Synthesizer.fit(frame, preset="fast", settings=HARDLY, seed=0)
    of_product = frame.drop_duplicates("sku").set_index("sku")["price"]
    drawn = model.sample(2_000, seed=1)
    assert (drawn["sku"].map(of_product) == drawn["price"]).all()
    rare = frame[~frame["sku"].isin(model.codec.schema["sku"].levels or ())].head(20)
    assert len(rare)
    assert np.isfinite(model.log_likelihood(rare, draws=50)["log_likelihood"]).all()
