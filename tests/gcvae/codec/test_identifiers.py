"""Identifiers look like the table's, are each a row's own, and none is an original."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import random
import re
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae import Synthesizer, TableReader, infer_schema
from gcvae.cells.values import parse_table
from gcvae.codec.identifiers import IdentifierCodec, WiderIdentifiersWarning
from gcvae.codec.table_codec import TableCodec
from gcvae.files.table_stream import stream_table
from gcvae.files.tables import read_table, write_table
from gcvae.schema.columns import Column
from gcvae.schema.kinds import ColumnKind
from tests.lengths import tries


def row_numbers(first: int, n: int) -> npt.NDArray[np.uint64]:
    return np.arange(first, first + n, dtype=np.uint64)


BARELY = {"max_steps": 5, "evaluate_every_steps": 5}
Keys = list[str]
ARABIC = str.maketrans("0123456789", "".join(chr(0x660 + i) for i in range(10)))


def uuids(n: int) -> Keys:
    bits = random.Random(0)
    return [str(uuid.UUID(int=bits.getrandbits(128), version=4)) for _ in range(n)]


def digits(width: int, n: int) -> Keys:
    drawn = random.Random(0)
    return [f"{drawn.randrange(10**width):0{width}d}" for _ in range(n)]


FORMS: dict[str, tuple[Callable[[int], Keys], str]] = {
    "six digits": (lambda n: [str(100_001 + i) for i in range(n)], r"[1-9]\d{5}"),
    "counted from one": (lambda n: [str(i + 1) for i in range(n)], r"[1-9]\d{2,3}"),
    "a year and a number": (
        lambda n: [f"INV-{2022 + i % 3}-{i:05d}" for i in range(n)],
        r"INV-202[234]-\d{5}",
    ),
    "leading zeros": (lambda n: [f"{i:07d}" for i in range(n)], r"\d{7}"),
    "uuid": (uuids, r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
    "UUID in capitals without dashes": (
        lambda n: [key.replace("-", "").upper() for key in uuids(n)],
        r"[0-9A-F]{12}4[0-9A-F]{3}[89AB][0-9A-F]{15}",
    ),
    "phone": (lambda n: [f"+49 171 {d}" for d in digits(7, n)], r"\+49 171 \d{7}"),
    "phone without spaces": (lambda n: [f"+49171{d}" for d in digits(7, n)], r"\+49171\d{7}"),
    "phone in brackets": (
        lambda n: [f"(212) {d[:3]}-{d[3:]}" for d in digits(7, n)],
        r"\(212\) \d{3}-\d{4}",
    ),
    "hex": (lambda n: [f"{int(d):012x}" for d in digits(14, n)], r"[0-9a-f]{12}"),
    "an account": (lambda n: [f"DE{d[:2]} {d[2:]}" for d in digits(20, n)], r"DE\d\d \d{18}"),
    "another script": (lambda n: [f"СЧ-{d}" for d in digits(8, n)], r"СЧ-\d{8}"),
    "Arabic digits": (
        lambda n: [f"{int(d)}".translate(ARABIC) for d in digits(7, n)],
        "[\u0661-\u0669][\u0660-\u0669]{6}",
    ),
    "Chinese": (
        lambda n: ["".join(chr(0x4E00 + int(d[i : i + 4])) for i in (0, 4, 8, 12))
                   for d in digits(16, n)],
        "[\u4e00-\u751f]{4}",
    ),
    "steps of ten": (lambda n: [str(10_000 + 10 * i) for i in range(n)], r"[1-9]\d{3}0"),
    "counted to 1,000": (lambda n: [f"K{1 + i}" for i in range(1000)], r"K\d{4}"),
    "tokens": (
        lambda n: [base64.urlsafe_b64encode(hashlib.sha256(d.encode()).digest())[:12].decode()
                   for d in digits(9, n)],
        r"[A-Za-z0-9_-]{12}",
    ),
    "letters and digits": (
        lambda n: [f"{chr(65 + i % 26)}{chr(65 + i % 23)}{d}" for i, d in enumerate(digits(6, n))],
        r"[A-Z]{2}\d{6}",
    ),
    "no form at all": (
        lambda n: [f"{'x ' * (i % 17)}{'abcde'[i % 5] * (i % 13)} {i // 7} m" for i in range(n)],
        r"synthetic-\d{8}",
    ),
    "names": (
        lambda n: [f"Anna{'abcdefgh'[i % 8] * (i // 8)} Meier" for i in range(n)],
        r"synthetic-\d{8}",
    ),
}  # fmt: skip


TEXT = Column("key", ColumnKind.IDENTIFIER)


def table_of(keys: Keys) -> pd.DataFrame:
    return pd.DataFrame({"key": keys, "x": [str(i % 7) for i in range(len(keys))]})


def codec_of(keys: Keys | pd.DataFrame) -> IdentifierCodec:
    """The codec of the column `key`, after a save and a load."""
    frame = keys if isinstance(keys, pd.DataFrame) else table_of(keys)
    schema = infer_schema(frame, {"columns": [{"name": "key", "kind": "identifier"}]}).schema
    document = TableCodec.fit(parse_table(frame, schema), schema).to_json()
    part = json.loads(json.dumps(document))["columns"]["key"]
    return IdentifierCodec.from_json(schema["key"], part)


@pytest.mark.parametrize("form", FORMS)
def test_keys_look_like_the_tables_are_unique_and_none_is_an_original(form: str) -> None:
    make, pattern = FORMS[form]
    originals = make(800)
    codec = codec_of(originals)
    keys = codec.decode(row_numbers(0, 50_000), seed=3)
    texts = keys.astype(str)
    assert keys.is_unique
    assert not set(texts) & set(originals)
    alike = texts[:500].map(lambda text: re.fullmatch(pattern, text) is not None)
    assert alike[: 50 if codec.width_warning(500) else 500].all(), texts.head()
    parts = [
        codec.decode(row_numbers(first, n), seed=3)
        for first, n in ((0, 1), (1, 1500), (1501, 1499))
    ]
    assert pd.concat(parts).tolist() == keys[:3000].tolist()


@pytest.mark.parametrize("form", [form for form in FORMS if not form.startswith("counted")])
def test_a_model_holds_none_of_the_tables_keys(form: str) -> None:
    originals = FORMS[form][0](600)
    text = json.dumps(codec_of(originals).to_json(), ensure_ascii=False)
    assert not [key for key in originals if re.search(rf"(?<!\d){re.escape(key)}(?!\d)", text)]


@given(
    keys=st.lists(
        st.from_regex(r"[ab]{1,2}-?\d{1,3}|[0-9a-f]{3,4}|\w{0,3}|0\d", fullmatch=True),
        min_size=1, max_size=300, unique=True,
    )
)  # fmt: skip
@tries(60)
def test_keys_of_whatever_texts_are_unique_and_none_is_an_original(keys: Keys) -> None:
    codec = IdentifierCodec.fit([pd.Series(keys, dtype=object)], TEXT)
    drawn = codec.decode(row_numbers(0, 3000), seed=1)
    assert drawn.is_unique
    assert not set(drawn) & set(keys)
    assert codec == IdentifierCodec.fit(
        [pd.Series(k, dtype=object) for k in (keys[:7], keys[7:])], TEXT
    )
    assert codec == IdentifierCodec.from_json(TEXT, json.loads(json.dumps(codec.to_json())))


def test_keys_of_a_million_rows_are_unique() -> None:
    codec = codec_of([f"{c}{i:05d}" for i in range(300) for c in "ABC"])
    keys = codec.decode(row_numbers(0, 1_000_000), seed=1)
    assert keys.is_unique
    assert keys[:90_000].str.fullmatch(r"[ABC]\d{5}").all()


def test_a_sample_of_a_long_column_does_not_depend_on_its_chunks() -> None:
    keys = pd.Series([f"{'AB'[i % 2]}{i:06d}" for i in range(120_000)], dtype=object)
    codec = IdentifierCodec.fit([keys], TEXT)
    assert codec == IdentifierCodec.fit([keys[:50_001], keys[50_001:]], TEXT)
    assert [template.rows for template in codec.templates] == pytest.approx([500, 500], abs=5)


def test_seeds_have_common_keys_by_chance_alone() -> None:
    """Of two draws of 1,000 out of some 800,000 keys, one is common on average."""
    codec = codec_of(FORMS["six digits"][0](1000))
    one, other = (set(codec.decode(row_numbers(0, 1000), seed)) for seed in (1, 2))
    assert len(one & other) < 10
    codec = codec_of(uuids(300))
    assert not set(codec.decode(row_numbers(0, 9000), 1)) & set(
        codec.decode(row_numbers(0, 9000), 2)
    )


def test_two_columns_of_one_form_have_keys_of_their_own() -> None:
    frame = table_of(uuids(200)).assign(other=uuids(400)[200:])
    schema = infer_schema(frame).schema
    codec = TableCodec.fit(parse_table(frame, schema), schema)
    drawn = codec.decode(codec.encode(parse_table(frame, schema)))
    assert not set(drawn["key"]) & set(drawn["other"])


@pytest.mark.parametrize(
    "width", [3, 4], ids=["of a full width", "of a width that is all but empty"]
)
def test_keys_beyond_the_room_of_their_width_get_a_digit_more(width: int) -> None:
    codec = codec_of([str(i) for i in range(100, 1000 if width == 3 else 1001)])
    keys = codec.decode(row_numbers(0, 20_000), seed=1)
    assert keys.is_unique
    assert keys.min() >= 1000
    assert set(keys.astype(str).str.len()) == {4, 5}
    note = codec.width_warning(20_000)
    assert note is not None
    assert "of 20,000 rows some have wider ones" in note
    assert codec_of(uuids(100)).width_warning(10**12) is None


@pytest.mark.parametrize("form", ["uuid", "another script", "letters and digits"])
def test_a_codec_whose_keys_run_out_still_gives_each_row_its_own(form: str) -> None:
    codec = codec_of(FORMS[form][0](300))
    [template] = codec.templates
    far = template.room * 4 // 5
    keys = codec.decode(row_numbers(far - far % 1000, 50_000), seed=1)
    both = codec.decode(row_numbers(template.room - 25_000, 50_000), seed=1)
    assert keys.is_unique
    assert both.is_unique
    assert both.astype(str).str.len().max() > keys.astype(str).str.len().min()


def test_negative_numbers_go_on_below_the_least() -> None:
    keys = codec_of([str(-1 - i) for i in range(1000)]).decode(row_numbers(0, 5000), seed=1)
    assert keys.is_unique
    assert keys.between(-9999, -1001).all()


def test_dense_letters_without_a_number_grow_digits_that_no_other_form_has() -> None:
    letters = [a + b for a in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" for b in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
    letters.remove("NA")
    keys = codec_of(letters).decode(row_numbers(0, 100_000), seed=1)
    assert keys.is_unique
    assert "NA" not in set(keys)  # which means missing
    assert not set(keys) & set(letters)
    assert keys.map(lambda key: re.fullmatch(r"[A-Z]{2}\d+", key) is not None).all()


def test_prefixes_keep_their_shares() -> None:
    keys = [("A-" if i % 10 < 7 else "B-") + str(10_000 + i) for i in range(2000)]
    drawn = codec_of(keys).decode(row_numbers(0, 10_000), seed=1)
    assert drawn.is_unique
    assert drawn.str.fullmatch(r"[AB]-\d{5}").all()
    assert drawn.str.startswith("A-").mean() == pytest.approx(0.7, abs=0.02)


def test_forms_keep_their_shares_and_prefixes_their_companions() -> None:
    keys = [f"K{i:04d}" if i % 4 else f"DE-BER-{i:04d}" for i in range(1000)]
    keys += [f"FR-PAR-{i:04d}" for i in range(1000, 1250)]
    drawn = codec_of(keys).decode(row_numbers(0, 5000), seed=1)
    shares = drawn.str.extract(r"^(K|DE-BER-|FR-PAR-)\d{4,5}$")[0].value_counts(normalize=True)
    assert shares.to_dict() == pytest.approx({"K": 0.6, "DE-BER-": 0.2, "FR-PAR-": 0.2}, abs=0.03)


def test_what_few_rows_share_is_not_kept() -> None:
    keys = [f"K-{i:05d}" for i in range(996)]
    keys += ["Secret Name 7", "TOPSECRET-12345", "K-99999999", "mole@agency.gov"]
    codec = codec_of(keys)
    text = json.dumps(codec.to_json()).casefold()
    assert not any(word in text for word in ("secret", "mole", "agency", "99999"))
    assert codec.decode(row_numbers(0, 5000), 1).str.fullmatch(r"K-\d{5}").all()


def test_uuids_of_a_small_table_keep_their_version_and_variant() -> None:
    keys = codec_of(uuids(60)).decode(row_numbers(0, 500), 1)
    assert keys.str.fullmatch(FORMS["uuid"][1]).all()


def test_names_that_are_hidden_as_identifiers_leave_no_letter() -> None:
    doctors = ["Dr. Quirin Xaver", "Dr. Zoltan Wycz", "Dr. Ytterbium Jo"]
    codec = codec_of([doctors[i % 3] for i in range(900)])
    text = json.dumps(codec.to_json())
    assert not re.search("Quirin|Xaver|Zoltan|Wycz|Ytterbium|Dr|Jo", text)
    keys = codec.decode(row_numbers(0, 1000), 1)
    assert keys.is_unique
    assert not set(keys) & set(doctors)


def test_blank_identifiers_keep_their_share() -> None:
    keys = [str(1000 + i) if i % 5 else "" for i in range(2000)]
    drawn = codec_of(keys).decode(row_numbers(0, 10_000), seed=1)
    assert drawn.isna().mean() == pytest.approx(0.2, abs=0.01)
    assert drawn.dropna().is_unique
    assert str(drawn.dtype) == "Int64"


@pytest.mark.parametrize(("dtype", "first"), [("int32", 2_000_000_000), ("int16", 20_000)])
def test_keys_of_a_narrow_type_fit_into_it(dtype: str, first: int) -> None:
    table = pd.DataFrame({"key": np.arange(first, first + 900).astype(dtype)})
    table["x"] = np.arange(900) % 7
    file = io.BytesIO()
    table.to_parquet(file)
    frame = read_table(file.getvalue())
    schema = infer_schema(frame, {"columns": [{"name": "key", "kind": "identifier"}]}).schema
    typed = parse_table(frame, schema)
    codec = TableCodec.fit(typed, schema)
    drawn = codec.decode(codec.encode(typed), 0, 5)
    written = b"".join(stream_table([drawn], schema, "parquet"))
    back = pd.read_parquet(io.BytesIO(written))
    assert back["key"].dtype == dtype
    assert back["key"].is_unique
    assert not set(back["key"]) & set(table["key"])


def test_a_file_and_a_frame_give_the_same_model_and_keys(tmp_path: Path) -> None:
    frame = table_of([f"INV-{2022 + i % 3}-{i:05d}" for i in range(300)])
    frame["y"] = [str(i * 7 % 100) for i in range(300)]
    frame.to_csv(tmp_path / "table.csv", index=False)
    frame = read_table(tmp_path / "table.csv")
    of_frame = Synthesizer.fit(frame, settings=BARELY)
    of_file = Synthesizer.fit(TableReader(tmp_path / "table.csv"), settings=BARELY)
    assert of_frame.codec == of_file.codec
    of_frame.save(tmp_path / "m.gcvae")
    loaded = Synthesizer.load(tmp_path / "m.gcvae")
    drawn = of_frame.sample(5000, seed=4)
    pd.testing.assert_frame_equal(loaded.sample(5000, seed=4), drawn)
    assert not (drawn["key"] == loaded.sample(5000, seed=6)["key"]).head(5).any()
    assert not set(drawn["key"]) & set(frame["key"])
    around = loaded.sample(given_rows=frame[["y"]].head(40), seed=4)
    assert around["key"].tolist() == drawn["key"].head(40).tolist()
    write_table(drawn, tmp_path / "drawn.csv", loaded.schema)
    assert pd.read_csv(tmp_path / "drawn.csv")["key"].str.fullmatch(r"INV-202\d-\d{5}").all()


def test_a_sample_whose_identifiers_run_out_warns() -> None:
    frame = table_of([f"K{i:02d}" for i in range(80)])
    fitted = Synthesizer.fit(frame, settings=BARELY)
    with pytest.warns(WiderIdentifiersWarning, match="room for 20 rows with fresh ones"):
        drawn = fitted.sample(300, seed=1)
    assert drawn["key"].is_unique
    assert fitted.notes(20) == []


@pytest.mark.parametrize("spoiled", [{"at": -1}, {"at": 0, "step": 0}, {"at": 8}])
def test_a_template_that_gives_no_further_keys_is_refused(spoiled: dict[str, object]) -> None:
    document = codec_of(uuids(60)).to_json()
    document["templates"][0] |= spoiled
    with pytest.raises(ValueError, match="a template of keys"):
        IdentifierCodec.from_json(TEXT, document)
