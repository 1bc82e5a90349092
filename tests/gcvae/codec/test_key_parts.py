"""Keys contain what other columns of their rows say: the year of a date, the code of a branch."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer
from gcvae.codec.key_parts import KeyPart, with_parts, without_parts

HARDLY = {"max_steps": 5, "evaluate_every_steps": 5}
CODES = {"München": "MUC", "Paris": "PAR", "大阪": "KIX"}


def invoices(form: str, n: int = 800) -> pd.DataFrame:
    """Invoices whose numbers are written in a form with {code}, {date:…} and {number}."""
    random = np.random.default_rng(0)
    date = np.datetime64("2021-03-01", "s") + random.integers(0, 1_200, n) * np.timedelta64(1, "D")
    frame = pd.DataFrame({"branch": random.choice([*CODES], n), "date": date})
    frame["amount"] = random.gamma(2.0, 50.0, n).round(2)
    frame.insert(0, "invoice", written(frame, form, range(n)))
    return frame


def written(rows: pd.DataFrame, form: str, numbers: Any) -> list[str]:
    return [
        form.format(code=CODES[branch], date=date, number=number)
        for branch, date, number in zip(rows["branch"], rows["date"], numbers, strict=True)
    ]


def fitted(frame: pd.DataFrame) -> Synthesizer:
    return Synthesizer.fit(frame, preset="fast", settings=HARDLY, seed=0)


@pytest.mark.parametrize(
    "form",
    [
        "{code}-{date:%Y}-{number:06d}",
        "No {number:05d}/{date:%y}",
        "{code}{date:%Y%m%d}{number:05d}",
        "R {date:%d%m%y} {code} {number:06d}",
    ],
)
def test_generated_keys_fit_their_rows(form: str) -> None:
    frame = invoices(form)
    drawn = Synthesizer.from_bytes(fitted(frame).to_bytes()).sample(3_000, seed=1)
    assert drawn["invoice"].is_unique
    assert not set(drawn["invoice"]) & set(frame["invoice"])
    pattern = re.sub(r"\\\{number:0(\d)d\\\}", r"(\\d{\1})", re.escape(form))
    pattern = re.sub(r"\\\{.*?\\\}", ".*?", pattern)
    numbers = [int(re.fullmatch(pattern, key)[1]) for key in drawn["invoice"]]  # type: ignore[index]
    assert written(drawn, form, numbers) == drawn["invoice"].tolist()


def test_keys_fit_rows_under_a_condition_and_with_columns_in_another_order() -> None:
    frame = invoices("{code}-{date:%Y}-{number:06d}")
    frame = frame[frame.columns[::-1]].set_index(np.arange(len(frame)) + 7)
    drawn = fitted(frame).sample(50, given={"branch": "大阪"}, seed=1)
    assert drawn["invoice"].str.startswith("KIX-").all()
    assert (drawn["invoice"].str[4:8].astype(int) == drawn["date"].dt.year).all()


def test_a_key_of_parts_alone_has_none() -> None:
    """Nothing else would keep such keys unique."""
    frame = invoices("{code}-{date:%Y%m%d}").drop_duplicates("invoice")
    drawn = fitted(frame).sample(500, seed=1)
    assert drawn["invoice"].is_unique


def test_a_part_by_chance_is_none() -> None:
    frame = invoices("{code}-{date:%Y}-{number:06d}")
    frame["branch"] = frame["branch"].sample(frac=1, random_state=0).to_numpy()
    drawn = fitted(frame).sample(500, seed=1)
    code = drawn["branch"].map(CODES)
    assert 0.2 < (drawn["invoice"].str[:3] == code).mean() < 0.5
    assert (drawn["invoice"].str[4:8].astype(int) == drawn["date"].dt.year).all()


def test_parts_are_taken_from_keys_and_inserted_again() -> None:
    parts = (
        KeyPart(0, "branch", "", (("München", "MUC"), ("Paris", "PAR")), True),
        KeyPart(2, "date", "%Y", (), False),
    )
    assert without_parts("MUC-2024000017", parts) == "A-000017"
    rows = pd.DataFrame(
        {
            "branch": ["Paris", "Rom", "Paris"],
            "date": pd.to_datetime(["2020-05-01", "2021-05-01", None]),
        }
    )
    keys = np.array(["A-000017", "A-000018", None], dtype=object)
    assert with_parts(keys, parts, rows).tolist() == ["PAR-2020000017", "A-2021000018", None]
    keys[:2] = "A", "A-000018"
    assert with_parts(keys, parts, rows)[0] == "PAR", "a key of another form"
