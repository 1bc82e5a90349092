"""Keys without signs, of one pattern, say what their row says at the same places."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer, TableReader
from gcvae.cells.values import format_table
from gcvae.codec.table_codec import TableCodec

N = 800
BARELY = {"max_steps": 5, "evaluate_every_steps": 5}
CODES = {"Deutschland": ("DE", "49"), "France": ("fr", "33"), "日本": ("Jp", "81")}
OWN = [("ABCDEFGHJK"[n % 10], "lmnpqrstuv"[n // 10 % 10]) for n in range(100)]


def table(form: str) -> pd.DataFrame:
    """Orders with keys of a form: {d} their day, {c} and {t} their country's codes, {n} a number,
    {a} and {b} letters of their own."""
    random = np.random.default_rng(0)
    day = pd.Timestamp("2019-01-01") + pd.to_timedelta(random.integers(0, 700, N), unit="D")
    country = random.choice(list(CODES), N)
    keys = [
        form.format(d=d, c=CODES[c][0], t=CODES[c][1], n=n, a=OWN[n % 100][0], b=OWN[n % 100][1])
        for d, c, n in zip(day, country, random.permutation(100_000)[:N], strict=True)
    ]
    return pd.DataFrame({"Land": country, "ключ": keys, "день": day.strftime("%d.%m.%Y")})


def drawn(frame: pd.DataFrame, path: Path, **more: object) -> pd.DataFrame:
    """Rows of a model that was saved, as they are written."""
    document = {"columns": [{"name": "ключ", "kind": "identifier"}]}
    Synthesizer.fit(frame, schema=document, seed=0, settings=BARELY).save(path / "m.gcvae")
    model = Synthesizer.load(path / "m.gcvae")
    rows = format_table(model.sample(900, 1, **more), model.schema)  # type: ignore[arg-type]
    assert rows["ключ"].is_unique
    assert not set(rows["ключ"]) & set(map(str, frame["ключ"]))
    return rows


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("{d:%Y%m%d}{n:05d}", "{d:%Y%m%d}....."),
        ("{c}{d:%Y%m%d}{n:05d}", "{c}{d:%Y%m%d}....."),
        ("{n:05d}{d:%d%m%y}", ".....{d:%d%m%y}"),
        ("{t}{n:05d}{d:%y}", "{t}.....{d:%y}"),
        ("{a}{b}{n:05d}{c}", "[A-K][l-v].....{c}"),
        ("{a}{b}12-{n:05d}-{c}", "[A-K][l-v]12-.....-{c}"),
        ("{c}{b}{n:05d}", "{c}[l-v]....."),
    ],
)
def test_a_key_without_signs_says_what_its_row_says(form: str, said: str, tmp_path: Path) -> None:
    rows = drawn(table(form), tmp_path)
    days = pd.to_datetime(rows["день"], format="%d.%m.%Y")
    patterns = [
        said.format(d=d, c=CODES[c][0], t=CODES[c][1])
        for d, c in zip(days, rows["Land"], strict=True)
    ]
    pairs = zip(rows["ключ"], patterns, strict=True)
    assert [key for key, pattern in pairs if not re.fullmatch(pattern, key)] == []


def test_keys_that_are_whole_numbers_stay_whole_numbers(tmp_path: Path) -> None:
    frame = table("{d:%Y%m%d}{n:05d}")
    frame["ключ"] = frame["ключ"].astype("Int64")
    frame.loc[[3, 5, 8], "ключ"] = pd.NA
    model = Synthesizer.fit(frame, seed=0, settings=BARELY)
    rows = model.sample(900, 1)
    assert rows["ключ"].dtype == "Int64"
    keys = rows["ключ"].dropna()
    days = pd.to_datetime(rows["день"], format="%d.%m.%Y").dt.strftime("%Y%m%d").astype(int)
    assert (keys // 100_000 == days[keys.index]).all()


def test_a_model_whose_keys_do_not_fall_into_their_tokens_is_refused(tmp_path: Path) -> None:
    document = {"columns": [{"name": "ключ", "kind": "identifier"}]}
    model = Synthesizer.fit(table("{a}{n:05d}-{c}"), schema=document, seed=0, settings=BARELY)
    found = json.loads(json.dumps(model.codec.to_json()))
    assert TableCodec.from_json(found) == model.codec
    assert len(found["columns"]["ключ"]["parts"]["own"]) == 2
    for pattern in found["columns"]["ключ"]["patterns"]:
        pattern["texts"] = [text.replace("-", "_") for text in pattern["texts"]]
    with pytest.raises(ValueError, match="keys of 'ключ' can not be put together"):
        TableCodec.from_json(found)


def test_one_key_of_another_width_leaves_all_runs_whole(tmp_path: Path) -> None:
    frame = table("{c}{d:%Y%m%d}{n:05d}")
    frame.loc[7, "ключ"] = "DE2019121500"
    rows = drawn(frame, tmp_path)
    said = rows["Land"].map({name: codes[0] for name, codes in CODES.items()})
    assert (rows["ключ"].str[:2] == said).all(), "letters are no part of the digits"
    days = pd.to_datetime(rows["день"], format="%d.%m.%Y").dt.strftime("%Y%m%d")
    assert not (rows["ключ"].str[2:10] == days).all()


def test_a_file_is_cut_as_its_frame_is(tmp_path: Path) -> None:
    frame = table("{c}{d:%Y%m%d}{n:05d}")
    frame.to_csv(tmp_path / "t.csv", index=False)
    of_file = Synthesizer.fit(TableReader(tmp_path / "t.csv"), seed=0, settings=BARELY)
    of_frame = Synthesizer.fit(frame, seed=0, settings=BARELY)
    assert of_file.sample(50, 1)["ключ"].tolist() == of_frame.sample(50, 1)["ключ"].tolist()
