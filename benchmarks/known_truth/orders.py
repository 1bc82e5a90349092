"""A table of orders, full of rules, of which each is known.

ordered    a day and time of 2024, on the minute, more by day than by night
shipped    never before `ordered`; in one row of five within the same minute
price      ends in .99, or in .49 in one row of eight
total      price x quantity; 10 % less, rounded to cents, in `DISCOUNT_SHARE` of the rows
category   of the product
currency   of the country
invoice    INV- and six digits, each once
paid, method    blank together, in one row of ten
note       blank in most rows
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

ROWS = 5_000
DISCOUNT_SHARE = 0.02
DISCOUNT_PERCENT = 10
START = np.datetime64("2024-01-01T00:00", "m")

CATEGORIES = {
    "desk": "furniture", "chair": "furniture", "shelf": "furniture", "lamp": "light",
    "bulb": "light", "torch": "light", "mug": "kitchen", "plate": "kitchen", "kettle": "kitchen",
    "pan": "kitchen", "pen": "paper", "notebook": "paper", "folder": "paper", "calendar": "paper",
    "drill": "tools", "hammer": "tools", "saw": "tools", "ladder": "tools", "rake": "garden",
    "hose": "garden", "pot": "garden", "bench": "garden", "tent": "outdoor", "rucksack": "outdoor",
}  # fmt: skip
CURRENCIES = {
    "Germany": "EUR", "France": "EUR", "Italy": "EUR", "Spain": "EUR", "Austria": "EUR",
    "Ireland": "EUR", "Switzerland": "CHF", "Liechtenstein": "CHF", "United Kingdom": "GBP",
    "Sweden": "SEK", "Denmark": "DKK", "Norway": "NOK", "Poland": "PLN", "Czechia": "CZK",
}  # fmt: skip
_NOTES = ("gift", "leave with a neighbour", "call first", "no advertisement")
_METHODS = ("card", "transfer", "invoice")


def draw_orders(n: int = ROWS, seed: int = 0) -> pd.DataFrame:
    """Orders, the cells of a table that a file would have. Shape: n rows of 13 columns."""
    random = np.random.default_rng(seed)
    products, countries = list(CATEGORIES), list(CURRENCIES)
    product = random.choice(len(products), n, p=_falling(len(products)))
    country = random.choice(len(countries), n, p=_falling(len(countries)))
    ordered = START + np.sort(_minutes(n, random))
    quantity = 1 + random.poisson(0.4 + 2.5 * (np.arange(len(products)) % 3)[product])
    cents = _cents(product, random)
    unpaid = random.random(n) < 0.1
    paid = ordered + random.geometric(1 / 600, n)
    method = np.array(_METHODS)[random.choice(3, n, p=[0.6, 0.25, 0.15])]
    return pd.DataFrame(
        {
            "invoice": [f"INV-{number:06d}" for number in 100_000 + np.arange(n) * 3],
            "ordered": ordered.astype(str),
            "shipped": (ordered + _waiting(product, random)).astype(str),
            "country": np.array(countries)[country],
            "currency": np.array(list(CURRENCIES.values()))[country],
            "product": np.array(products)[product],
            "category": np.array(list(CATEGORIES.values()))[product],
            "price": [f"{cents_ / 100:.2f}" for cents_ in cents],
            "quantity": quantity.astype(str),
            "total": [f"{total / 100:.2f}" for total in _totals(cents * quantity, random)],
            "paid": np.where(unpaid, "", paid.astype(str)),
            "method": np.where(unpaid, "", method),
            "note": np.where(random.random(n) < 0.7, "", random.choice(_NOTES, n)),
        },
        dtype=object,
    )


def _falling(n: int) -> npt.NDArray[np.float64]:
    weights = 1.0 / np.arange(2, n + 2)
    return weights / weights.sum()


def _minutes(n: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Minutes of a year; four of five between 8 and 20 o'clock."""
    day = random.integers(0, 366, n)
    by_day = random.random(n) < 0.8
    minute = np.where(by_day, random.integers(480, 1_200, n), random.integers(0, 1_440, n))
    return day * 1_440 + minute


def _waiting(product: npt.NDArray[np.int64], random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Minutes until an order is shipped; 0 in one row of five, longer for some products."""
    at_once = random.random(len(product)) < 0.2
    waiting = random.gamma(2.0, 700.0 * (1 + product % 4)).astype(np.int64) + 1
    return np.where(at_once, 0, waiting)


def _cents(product: npt.NDArray[np.int64], random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Prices of a product's own range, ending in 99 or 49."""
    whole = np.floor((4.0 + 9.0 * product) * np.exp(0.35 * random.standard_normal(len(product))))
    ending = np.where(random.random(len(product)) < 1 / 8, 49, 99)
    return whole.astype(np.int64) * 100 + ending


def _totals(cents: npt.NDArray[np.int64], random: np.random.Generator) -> npt.NDArray[np.int64]:
    """The cents, or what a discount leaves of them, half a cent rounded up."""
    discounted = (cents * (100 - DISCOUNT_PERCENT) + 50) // 100
    return np.where(random.random(len(cents)) < DISCOUNT_SHARE, discounted, cents)
