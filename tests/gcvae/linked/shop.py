"""A small database: plans (a catalogue), customers, orders in time, lines of two parents."""

from __future__ import annotations

import numpy as np
import pandas as pd


def shop(n_customers: int = 120, seed: int = 0) -> dict[str, pd.DataFrame]:
    """Its tables. Orders follow each other by a week or two; a total adds up its lines."""
    rng = np.random.default_rng(seed)
    products = pd.DataFrame(
        {
            "product_id": np.arange(1, 31),
            "title": [f"{a} {b}" for a in ("Red", "Blue", "Green") for b in _THINGS],
            "colour": np.repeat(["red", "blue", "green"], 10),
            "price": np.round(rng.uniform(2, 40, 30), 2),
        }
    )
    level = rng.normal(size=n_customers)
    customers = pd.DataFrame(
        {
            "customer_id": [f"C{i:05d}" for i in 10_000 + rng.permutation(n_customers)],
            "country": rng.choice(["DE", "FR", "PL"], n_customers, p=[0.5, 0.3, 0.2]),
            "joined": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(rng.integers(0, 200, n_customers), unit="D"),
            "friend": [None] * n_customers,
        }
    )
    friends = rng.choice(customers["customer_id"], n_customers)
    has_friend = rng.random(n_customers) < 0.6
    customers["friend"] = np.where(has_friend, friends, None)
    counts = rng.poisson(4, n_customers)
    of = np.repeat(np.arange(n_customers), counts)
    gaps = pd.Series(rng.choice([7, 14], len(of))).groupby(of).cumsum()
    orders = pd.DataFrame(
        {
            "order_id": 1000 + rng.permutation(len(of)),
            "customer_id": customers["customer_id"].to_numpy()[of],
            "country": customers["country"].to_numpy()[of],
            "ordered": customers["joined"].to_numpy()[of] + pd.to_timedelta(gaps, unit="D"),
            "channel": np.where(level[of] + 0.3 * rng.normal(size=len(of)) > 0, "web", "shop"),
            "total": 0.0,
        }
    )
    orders["shipped"] = orders["ordered"] + pd.to_timedelta(rng.integers(0, 5, len(of)), unit="D")
    n_lines = rng.integers(1, 5, len(of))
    of_orders = np.repeat(np.arange(len(of)), n_lines)
    product = rng.integers(0, 30, len(of_orders))
    lines = pd.DataFrame(
        {
            "order_id": orders["order_id"].to_numpy()[of_orders],
            "product_id": products["product_id"].to_numpy()[product],
            "price": products["price"].to_numpy()[product],
            "quantity": rng.integers(1, 4, len(of_orders)),
        }
    ).drop_duplicates(["order_id", "product_id"])
    sums = (lines["price"] * lines["quantity"]).groupby(lines["order_id"]).sum()
    orders["total"] = sums.reindex(orders["order_id"]).round(2).to_numpy()
    return {
        "products": products,
        "customers": customers,
        "orders": orders,
        "lines": lines.reset_index(drop=True),
    }


_THINGS = ("cup", "bowl", "lamp", "chair", "vase", "table", "clock", "shelf", "frame", "box")

KEYS = {
    "tables": {
        "customers": {
            "primary_key": "customer_id",
            "foreign_keys": [{"columns": ["friend"], "table": "customers"}],
        },
        "lines": {"primary_key": ["order_id", "product_id"]},
    }
}
