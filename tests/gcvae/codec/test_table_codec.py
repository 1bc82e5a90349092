"""The codec: what is encoded comes back, and nothing else does."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcvae.cells.values import format_table, parse_table
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.table_codec import TableCodec
from gcvae.files.tables import read_table
from gcvae.profiling.infer import infer_schema
from tests.gcvae.cells.test_values import TABLES
from tests.gcvae.frames import KINDS, columns, frame_of
from tests.lengths import first_of, tries


def typed(frame: pd.DataFrame, given: object = None) -> tuple[pd.DataFrame, TableCodec]:
    schema = infer_schema(frame, given).schema  # type: ignore[arg-type]
    values = parse_table(frame, schema)
    values.attrs = {}
    return values, TableCodec.fit(values, schema)


def read(text: str, given: object = None) -> tuple[pd.DataFrame, TableCodec]:
    return typed(read_table(text.encode()), given)


def again(codec: TableCodec) -> TableCodec:
    return TableCodec.from_json(json.loads(json.dumps(codec.to_json())))


# Laws


@pytest.mark.parametrize(
    "kind", sorted(set(KINDS) - {"floats as Python writes them", "large integers"})
)
@tries(20)
@given(data=st.data())
def test_what_is_encoded_decodes_to_what_it_was(kind: str, data: st.DataObject) -> None:
    frame, codec = typed(frame_of(data.draw(columns(kind))))
    pd.testing.assert_frame_equal(codec.decode(codec.encode(frame)), frame, check_exact=True)


@tries(20)
@given(st.lists(st.floats(-1e6, 1e6), min_size=25, max_size=40, unique=True))
def test_numbers_of_all_digits_decode_to_within_their_last_digits(numbers: list[float]) -> None:
    frame, codec = typed(pd.DataFrame({"x": numbers}))
    decoded = codec.decode(codec.encode(frame))["x"]
    # Four operations round: x - offset, by scale, times it, + offset. The first three err by half a
    # last digit of |x - offset|, at most 2 max |x|, the last by one of x: 7 halves of max |x|.
    most = 7 * 0.5 * np.finfo(float).eps
    assert np.abs(decoded - frame["x"]).max() <= most * max(1.0, np.abs(frame["x"]).max())


@pytest.mark.parametrize("name", first_of(*TABLES))
def test_a_real_table_decodes_to_what_it_was(name: str, data_dir: Path) -> None:
    frame, codec = typed(read_table(data_dir / f"{name}.csv"))
    pd.testing.assert_frame_equal(codec.decode(codec.encode(frame)), frame, check_exact=True)


@pytest.mark.parametrize("kind", KINDS)
@tries(10)
@given(data=st.data())
def test_a_codec_comes_back_from_its_document(kind: str, data: st.DataObject) -> None:
    frame, codec = typed(frame_of(data.draw(columns(kind))))
    assert again(codec) == codec
    encoded = codec.encode(frame)
    assert torch.equal(again(codec).encode(frame).values, encoded.values)
    pd.testing.assert_frame_equal(again(codec).decode(encoded), codec.decode(encoded))


@tries(20)
@given(data=st.data(), kind=st.sampled_from(sorted(KINDS)), seed=st.integers(0, 99))
def test_whatever_is_decoded_is_within_the_schema(
    data: st.DataObject, kind: str, seed: int
) -> None:
    _, codec = typed(frame_of(data.draw(columns(kind))))
    generator = torch.Generator().manual_seed(seed)
    codes = torch.stack(
        [torch.randint(c.n_codes, (50,), generator=generator) for c in codec.columns], dim=1
    ).int()
    values = 100 * torch.randn(codes.shape, dtype=torch.float64, generator=generator)
    frame = codec.decode(EncodedTable(codes, values, torch.ones_like(codes, dtype=torch.bool)))
    # As it is written: in typed rows a time stands in for a date for never.
    checked = infer_schema(format_table(frame, codec.schema), codec.schema).schema
    assert checked.names == codec.schema.names


def test_typed_columns_decode_to_their_dtypes() -> None:
    n = 40
    frame = pd.DataFrame(
        {
            "int": np.arange(n) * 3,
            "few": np.arange(n) % 3,
            "float": np.linspace(0, 1, n).round(3),
            "few floats": np.arange(n) % 3 / 2,
            "whole floats": np.arange(n, dtype=float) * 3,
            "bool": [True, False] * (n // 2),
            "date": pd.date_range("2024-01-01", periods=n, unit="us"),
            "time": pd.date_range("2024-01-01", periods=n, freq="7min", unit="us"),
            "text": ["a", None] * (n // 2),
            "gaps": pd.array([None, *range(0, 3 * (n - 1), 3)], dtype="Int64"),
            "maybe": pd.array([None, True, False, True] * (n // 4), dtype="boolean"),
        }
    )
    values, codec = typed(frame)
    pd.testing.assert_frame_equal(codec.decode(codec.encode(values)), frame, check_exact=True)


def test_months_decode_to_their_first_days() -> None:
    text = "d,s\n" + "".join(f"20{i % 30 + 10}-{i % 12 + 1:02d},{'ab'[i % 2]}\n" for i in range(60))
    frame, codec = read(text)
    encoded = codec.encode(frame)
    pd.testing.assert_frame_equal(codec.decode(encoded), frame)
    shifted = EncodedTable(encoded.codes, encoded.values + 0.01, encoded.observed)
    assert (codec.decode(shifted)["d"].dt.day == 1).all()


# Codes and values


def test_levels_are_codes_in_the_order_of_the_schema() -> None:
    frame, codec = read("s,b\nlow,no\nhigh,yes\nlow,no\n", {
        "columns": [{"name": "s", "kind": "ordinal", "levels": ["low", "mid", "high"]}]
    })  # fmt: skip
    assert [column.n_codes for column in codec.columns] == [3, 2]
    assert codec.encode(frame).codes.tolist() == [[0, 0], [2, 1], [0, 0]]


def test_missing_is_code_zero_where_training_had_it() -> None:
    frame, codec = read(
        "s,n\n" + "".join(f"{'?ab'[i % 3]},{'?' if i == 2 else i}\n" for i in range(30))
    )
    assert [column.has_missing for column in codec.columns] == [True, True]
    assert [column.n_codes for column in codec.columns] == [3, 2]
    assert codec.encode(frame).codes[:3].tolist() == [[0, 1], [1, 1], [2, 0]]


def test_values_are_standardised_and_zero_where_there_is_no_number() -> None:
    frame, codec = read(
        "n,s\n" + "".join(f"{'' if i == 7 else i * i},{'ab'[i % 2]}\n" for i in range(99))
    )
    encoded = codec.encode(frame)
    numbers = encoded.values[encoded.codes[:, 0] == 1, 0]
    assert abs(numbers.mean().item()) < 1e-2
    assert abs(numbers.std(correction=0).item() - 1) < 1e-4
    assert encoded.values[7, 0] == 0
    assert not encoded.values[:, 1].any()


def test_tensors_have_the_stated_types() -> None:
    frame, codec = read("n,s\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(30)))
    encoded = codec.encode(frame)
    types = encoded.codes.dtype, encoded.values.dtype, encoded.observed.dtype
    assert types == (torch.int32, torch.float64, torch.bool)
    assert len(encoded.take(torch.tensor([3, 1]))) == 2


def test_an_outcome_that_training_had_not_has_no_code() -> None:
    _, codec = read("n,s,b\n" + "".join(f"{i},{'ab'[i % 2]},{'NY'[i % 2]}\n" for i in range(30)))
    rows = parse_table(read_table(b"n,s,b\n?,z,maybe\n99,a,N\n"), codec.schema)
    assert codec.encode(rows).codes.tolist() == [[-1, -1, -1], [0, 0, 0]]


def test_a_blank_can_be_an_unknown_cell_whether_training_had_blanks_or_not() -> None:
    _, codec = read("n,s\n" + "".join(f"{i},{'?ab'[i % 3]}\n" for i in range(30)))
    rows = parse_table(read_table(b"n,s\n?,a\n3,?\n"), codec.schema)
    encoded = codec.encode(rows, blanks_unknown=True)
    assert encoded.observed.tolist() == [[False, True], [True, False]]
    assert (encoded.codes >= 0).all()
    assert codec.encode(rows).observed.all()


@pytest.mark.parametrize(
    ("cell", "scale_days"),
    [("2024-01-{:02d}", 1.0), ("2024-01-{:02d} 00:00:00", 1.0), ("2024-{:02d}-01T00:00", 30.0)],
)
def test_the_log_scale_of_dates_is_in_days(cell: str, scale_days: float) -> None:
    n = 12
    text = "d,s\n" + "".join(f"{cell.format(i % n + 1)},{'ab'[i % 2]}\n" for i in range(n))
    frame, codec = read(text)
    spread = math.sqrt((n * n - 1) / 12)
    log_units = codec.log_units(codec.encode(frame))[0].item()
    assert log_units == pytest.approx(math.log(spread * scale_days), abs=0.05)


def test_the_log_scale_turns_a_density_of_values_into_one_of_numbers() -> None:
    frame, codec = read("n,s\n" + "".join(f"{i / 4},{'ab'[i % 2]}\n" for i in range(60)))
    values = codec.encode(frame).values[:, 0]
    per_value = (values[1] - values[0]).item() / (frame["n"][1] - frame["n"][0])
    log_units = codec.log_units(codec.encode(frame))
    assert log_units.tolist() == pytest.approx([-math.log(per_value)] * 60)


def test_numbers_are_decoded_to_their_decimals_and_within_their_limits() -> None:
    text = "x,n,s\n" + "".join(f"{i / 8:.1f},{i},{'ab'[i % 2]}\n" for i in range(60))
    _, codec = read(text, {"columns": [{"name": "n", "maximum": 70}]})
    values = torch.tensor([[-9.0, 0.123, 0], [0.123456, 9.0, 0], [9.0, 0, 0]], dtype=torch.float64)
    codes = torch.zeros(3, 3, dtype=torch.int32)
    frame = codec.decode(EncodedTable(codes, values, codes == 0))
    assert frame["x"].tolist()[::2] == [0.0, 7.4]
    assert frame["x"][1] == round(frame["x"][1], 1)
    assert frame["n"][1] == 70


# What is not modelled


def test_dropped_columns_come_neither_in_nor_out() -> None:
    frame, codec = read("a,b,c\n1,x,u\n2,y,v\n", {"columns": [{"name": "b", "drop": True}]})
    assert [column.name for column in codec.columns] == ["a", "c"]
    assert list(codec.decode(codec.encode(frame))) == ["a", "c"]


def test_constants_come_back_in_every_row() -> None:
    text = "a,c,d,e,f\n" + "".join(f"{i},5,2024-01-01,,x\n" for i in range(3))
    frame, codec = read(text)
    assert [column.name for column in codec.columns] == ["a"]
    pd.testing.assert_frame_equal(codec.decode(codec.encode(frame)), frame)


IDENTIFIERS = {
    "numbers": [str(i) for i in range(1, 61)],
    "negative numbers": [str(-i) for i in range(1, 61)],
    "hashes of 64 bits": [str(hash_) for hash_ in np.random.default_rng(0).integers(
        -(2**62) * 2, 2**62 * 2 - 2048, 60, dtype=np.int64)],
    "words": [f"person {i}" for i in range(60)],
    "words like fallback keys": [f"Synthetic-{i}" for i in range(60)],
    "words with gaps": ["", *(f"k{i}" for i in range(60))],
}  # fmt: skip


@pytest.mark.parametrize("kind", IDENTIFIERS)
def test_an_identifier_is_fresh_unique_and_of_the_type_of_the_originals(kind: str) -> None:
    cells = IDENTIFIERS[kind]
    source = pd.DataFrame({"id": cells, "x": [str(i % 7) for i in range(len(cells))]})
    frame, codec = typed(source, {"columns": [{"name": "id", "kind": "identifier"}]})
    fresh = codec.decode(codec.encode(frame))["id"]
    assert fresh.isna().any() <= (kind == "words with gaps")
    assert fresh.dropna().is_unique
    assert not set(fresh.dropna()) & set(frame["id"])
    assert fresh.dtype == frame["id"].dtype


def test_a_column_that_equals_another_in_every_row_is_copied_and_not_modelled() -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"a": random.normal(size=60).round(3), "b": random.integers(0, 3, 60)})
    frame.loc[3, "a"] = np.nan
    frame = frame.assign(c=frame["a"], d=frame["b"], e=frame["b"].where(frame.index > 0, 2))
    schema = infer_schema(frame).schema
    table = parse_table(frame, schema)
    codec = TableCodec.fit(table, schema, encoding="quantile")
    assert codec.copies == {"c": "a", "d": "b"}
    assert [column.name for column in codec.columns] == ["a", "b", "e"]
    pd.testing.assert_frame_equal(codec.decode(codec.encode(table)), table)
    assert TableCodec.from_json(codec.to_json()) == codec


def test_rare_flags_that_agree_by_chance_are_no_copies() -> None:
    flag = [True, True] + [False] * 98
    frame = pd.DataFrame({"a": flag, "b": flag})
    schema = infer_schema(frame).schema
    assert TableCodec.fit(parse_table(frame, schema), schema, encoding="quantile").copies == {}


def test_a_fresh_whole_number_reads_back_as_one() -> None:
    """No original leaves room above 2^62, and beyond 2^63 - 1024 digits are a name."""
    cells = [str(2**62 + i) for i in range(60)]
    frame, codec = read(
        "id,x\n" + "".join(f"{cell},{i % 7}\n" for i, cell in enumerate(cells)),
        {"columns": [{"name": "id", "kind": "identifier"}]},
    )
    fresh = codec.decode(codec.encode(frame))
    pd.testing.assert_frame_equal(
        parse_table(format_table(fresh, codec.schema), codec.schema), fresh
    )


def test_whole_numbers_keep_their_last_digit_within_the_limits() -> None:
    cells = [str(2**53 + i) for i in range(1, 42, 2)]
    frame, codec = read("n,s\n" + "".join(f"{n},{'ab'[i % 2]}\n" for i, n in enumerate(cells)))
    pd.testing.assert_frame_equal(codec.decode(codec.encode(frame)), frame)


def test_only_columns_that_may_hold_the_same_are_copies() -> None:
    cells = [str(i) for i in range(60)]
    frame = pd.DataFrame({"a": cells, "b": cells}, dtype=object)
    schema = infer_schema(frame, {"columns": [{"name": "a", "maximum": 99}]}).schema
    assert TableCodec.fit(parse_table(frame, schema), schema, encoding="quantile").copies == {}


def test_on_the_unit_interval_numbers_lie_by_the_range_of_their_column() -> None:
    frame = pd.DataFrame(
        {
            "grey": [0.25, 0.5, 0.75, 0.4],
            "count": [3, 7, 5, 6],
            "on": ["2024-01-01", "2024-01-05", "2024-01-03", "2024-01-02"],
            "flat": [0.5, 0.5, 0.5, 0.5],
        }
    )
    given = {"columns": [
        {"name": "grey", "kind": "continuous", "minimum": 0, "maximum": 1},
        {"name": "count", "kind": "integer"}, {"name": "on", "kind": "datetime"},
        {"name": "flat", "kind": "continuous", "minimum": 0, "maximum": 1},
    ]}  # fmt: skip
    schema = infer_schema(frame, given).schema
    values = parse_table(frame, schema)
    codec = TableCodec.fit(values, schema, encoding="unit")
    found = codec.encode(values).values
    expected = [[0.25, 0.5, 0.75, 0.4], [0, 1, 0.5, 0.75], [0, 1, 0.5, 0.25], [0.5] * 4]
    np.testing.assert_allclose(found.numpy(), np.array(expected).T, atol=1e-12)
    assert again(codec) == codec
    pd.testing.assert_frame_equal(codec.decode(codec.encode(values)), values, check_names=False)
