"""What other columns say of a key, drawn keys say too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer, TableReader
from gcvae.cells.values import format_table
from gcvae.codec.keys.parts import KeyParts

N = 600
BARELY = {"max_steps": 5, "evaluate_every_steps": 5}
CODES = {"Deutschland": "DE", "France": "FR", "日本": "JP"}


def orders(seed: int = 0) -> pd.DataFrame:
    """Orders whose number has the country, the year and the month; countries in the last column."""
    random = np.random.default_rng(seed)
    day = pd.Timestamp("2021-01-01") + pd.to_timedelta(random.integers(0, 900, N), unit="D")
    country = random.choice(list(CODES), N)
    number = random.permutation(10_000)[:N]
    key = [f"{CODES[c]}{d:%Y}-{d:%m}/{n:05d}" for c, d, n in zip(country, day, number, strict=True)]
    return pd.DataFrame({"Nr": key, "day": day.strftime("%Y-%m-%d"), "country": country})


def drawn_orders(synthesizer: Synthesizer, **more: object) -> pd.DataFrame:
    return format_table(synthesizer.sample(800, 1, **more), synthesizer.schema)  # type: ignore[arg-type]


def agree(rows: pd.DataFrame) -> pd.Series[bool]:
    """Rows whose key says what their country and their day do."""
    said = rows["country"].map(CODES) + rows["day"].str[:4] + "-" + rows["day"].str[5:7] + "/"
    return pd.Series(rows["Nr"].str[:-5] == said)


def test_keys_say_what_the_rest_of_their_row_says_also_of_a_saved_model(tmp_path: Path) -> None:
    table = orders()
    assert agree(table).all()
    Synthesizer.fit(table, seed=0, settings=BARELY).save(tmp_path / "m.gcvae")
    synthesizer = Synthesizer.load(tmp_path / "m.gcvae")
    rows = drawn_orders(synthesizer)
    assert agree(rows).all()
    assert rows["Nr"].str.fullmatch(r"(DE|FR|JP)202\d-\d\d/\d{5}").all()
    assert rows["Nr"].is_unique
    assert not set(rows["Nr"]) & set(table["Nr"])
    assert agree(drawn_orders(synthesizer, given={"country": "日本"})).all()


def test_a_file_gives_the_keys_of_its_frame(tmp_path: Path) -> None:
    orders().to_csv(tmp_path / "t.csv", index=False)
    of_file = Synthesizer.fit(TableReader(tmp_path / "t.csv"), seed=0, settings=BARELY)
    of_frame = Synthesizer.fit(orders(), seed=0, settings=BARELY)
    assert drawn_orders(of_file)["Nr"].tolist() == drawn_orders(of_frame)["Nr"].tolist()


def test_without_rules_keys_are_drawn_by_themselves() -> None:
    synthesizer = Synthesizer.fit(orders(), seed=0, settings=BARELY | {"rules": "none"})
    assert agree(drawn_orders(synthesizer)).mean() < 0.5


@pytest.mark.parametrize("spoiled", [0.03, 0.5])
def test_a_part_that_many_keys_break_is_no_part(spoiled: float) -> None:
    table = orders()
    random = np.random.default_rng(1)
    other = random.choice(list(CODES), N)
    table["country"] = np.where(random.random(N) < spoiled, other, table["country"])
    synthesizer = Synthesizer.fit(table, seed=0, settings=BARELY)
    rows = drawn_orders(synthesizer)
    in_year = rows["Nr"].str[2:6] == rows["day"].str[:4]
    if spoiled < 0.1:
        assert agree(rows).all()
    else:
        assert in_year.all()
        assert not agree(rows).all(), "the country is a token of its own"


@pytest.mark.parametrize("odd", ["test", "de2021-01/00001", "DE202101/99999", ""])
def test_an_odd_key_or_blank_leaves_the_others_as_they_are(odd: str) -> None:
    table = orders()
    table.loc[[0, 250], "Nr"] = odd
    rows = drawn_orders(Synthesizer.fit(table, seed=0, settings=BARELY))
    rows = rows[rows["Nr"] != ""]
    assert len(rows) > 700
    assert agree(rows).all()
    assert rows["Nr"].is_unique


def test_a_key_of_two_numbers_of_its_own_has_both_and_what_is_said() -> None:
    table = orders()
    table["Nr"] = [f"{key}-{n}" for key, n in zip(table["Nr"], range(N), strict=True)]
    rows = drawn_orders(Synthesizer.fit(table, seed=0, settings=BARELY))
    assert rows["Nr"].is_unique
    assert not set(rows["Nr"]) & set(table["Nr"])
    assert rows["Nr"].str.fullmatch(r".{10}\d{5}-\d{1,4}").all()
    assert agree(rows.assign(Nr=rows["Nr"].str.rpartition("-")[0])).all()


def test_parts_of_a_model_from_before_keys_were_cut_are_read() -> None:
    said = {"place": 0, "column": "country", "tokens": {"France": "FR"}, "date_format": None}
    document = {"fixed": {"1": "-"}, "said": [said | {"usual": "DE"}], "own": 2}
    parts = KeyParts.from_json(document)
    assert (parts.own, parts.cuts) == ((2,), {})
    assert KeyParts.from_json(parts.to_json()) == parts
    for own in ([], [1], [3], [2, 2]):
        with pytest.raises(ValueError, match="tokens of a key are missing, or there twice"):
            KeyParts.from_json(document | {"own": own})
