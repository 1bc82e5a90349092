"""Tables of few prices with eight rules, and of measured stones with one that holds nearly."""

from __future__ import annotations

import numpy as np
import pandas as pd

_PRICES = (19.99, 24.99, 29.99, 39.99, 49.99, 79.99, 99.0)
_COSTS = (8.5, 11.2, 14.0, 17.75, 22.4, 41.3, 52.8)


def draw_prices(seed: int, n: int = 4_000) -> pd.DataFrame:
    """Cells of sales at seven prices, of which eight columns follow from four."""
    random = np.random.default_rng(seed)
    which = random.integers(0, len(_PRICES), n)
    price, cost = np.array(_PRICES)[which], np.array(_COSTS)[which]
    discount = random.choice([0, 2.5, 5, 7.5, 10], n)
    quantity = random.integers(1, 6, n)
    sale = np.round(price - discount, 2)
    margin = np.round(sale - cost, 2)
    columns = {
        "price": (price, 2),
        "discount": (discount, 1),
        "quantity": (quantity, 0),
        "cost": (cost, 2),
        "sale_price": (sale, 2),
        "total": (sale * quantity, 2),
        "margin": (margin, 2),
        "discount_share": (discount / price, 4),
        "margin_pct": (100 * margin / sale, 1),
        "saved": (discount * quantity, 1),
        "list_total": (price * quantity, 2),
        "profit": (margin * quantity, 2),
    }
    return pd.DataFrame(
        {name: [f"{x:.{d}f}" for x in numbers] for name, (numbers, d) in columns.items()}
    )


def draw_stones(seed: int, n: int = 8_000) -> pd.DataFrame:
    """Cells of stones: length, width, height, and a depth that is measured to about 0.05."""
    random = np.random.default_rng(seed)
    x = np.round(random.lognormal(1.7, 0.25, n), 2)
    w = np.round(x * (1 + random.normal(0, 0.006, n)), 2)
    z = np.round(np.clip(random.normal(61.7, 1.4, n), 55, 70) / 200 * (x + w), 2)
    depth = np.clip(200 * z / (x + w) + random.normal(0, 0.04, n), 50, 75)
    carat = 0.0061 * x * w * z * np.exp(random.normal(0, 0.02, n))
    price = np.exp(8 + 1.7 * np.log(carat) + random.normal(0, 0.25, n))
    columns = {
        "carat": (carat, 2),
        "depth": (depth, 1),
        "x": (x, 2),
        "w": (w, 2),
        "z": (z, 2),
        "price": (price, 0),
    }
    frame = {name: [f"{v:.{d}f}" for v in numbers] for name, (numbers, d) in columns.items()}
    return pd.DataFrame(frame | {"cut": random.choice(list("ABC"), n)})
