"""Hostile inputs: files, texts and documents, made from good ones and from nothing.

Each is bytes, or a JSON document, and each subject says what reads it and what it may raise.
"""

from __future__ import annotations

import copy
import gzip
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from pydantic import ValidationError

from gcvae import Synthesizer
from gcvae.artifact.file import pack_tensors, unpack_tensors
from gcvae.errors import GcvaeError
from gcvae.files.row_documents import rows_to_csv
from gcvae.schema.columns import TableSchema
from gcvae.trial import try_out
from service.bodies import NewModelBody
from service.errors import ServiceError
from service.http.json_bodies import read_json
from service.ingestion import check_table
from service.routes.models import checked_training
from service.routes.samples import NewSampleBody
from service.routes.scores import NewScoresBody
from service.settings import ServiceSettings

REFUSALS = (GcvaeError, ServiceError, ValidationError, MemoryError)
"""What a reader may raise of an input: of memory the service makes a clear answer."""

_SETTINGS = ServiceSettings(max_table_bytes=1 << 26, max_rows=100_000, max_levels=5_000)

_ODD = (
    *(
        "",
        " ",
        "0",
        "-0",
        "1e308",
        "1e309",
        "-1e-320",
        "NaN",
        "inf",
        "NULL",
        "true",
        "no",
        "-",
        "--",
    ),
    *("2020-02-30", "1677-09-21", "9999-12-31", "2020-01-01T00:00:00+14:00", "24:00", "1/2", "½"),
    *('"', '""', '"a', "a\nb", "a\r", "\x00", "\ufeff", "\u202e", "\U0001f600", "٣", "=1+1", "@x"),
    *("1,5", "1 000", "1_000", "0x1f", "9" * 40, "a" * 300, "€5", "12%", "1.2.3", "\\N"),
)
_CELLS = st.sampled_from(_ODD) | st.text(max_size=12)
_PLAIN = st.sampled_from(["1", "2.5", "-3", "a", "b", "", "2020-01-02", "yes"])
_SEPARATORS = st.sampled_from([",", ";", "\t", "|", ", "])
_ENDINGS = st.sampled_from(["\n", "\r\n", "\r", "\n\n"])

GOOD_CSV = "id,age,city,side,joined,score\n" + "".join(
    f"{i},{20 + i % 7},{'ABC'[i % 3]},{'lr'[i % 2]},2020-01-{1 + i % 28:02},{i / 8}\n"
    for i in range(24)
)


@st.composite
def tables(draw: st.DrawFn) -> bytes:
    """CSV, more or less: some of it whole, of odd cells in quotes, some of rows as they come."""
    separator, ending = draw(_SEPARATORS), draw(_ENDINGS)
    width, is_whole = draw(st.integers(1, 5)), draw(st.booleans())
    cells = draw(st.sampled_from([_PLAIN, _PLAIN | _CELLS, _CELLS]))
    least = width if is_whole else 1
    row = st.lists(cells, min_size=least, max_size=width if is_whole else width + 1)
    lines = draw(st.lists(row, max_size=8)) * draw(st.integers(1, 4))
    name = _CELLS if draw(st.booleans()) else st.text("abcdé", min_size=1, max_size=9)
    names = draw(st.lists(name, min_size=width, max_size=width))
    if is_whole:
        lines = [['"' + cell.replace('"', '""') + '"' for cell in line] for line in lines]
    text = ending.join(separator.join(line) for line in [names, *lines])
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-16", "utf-8-sig", "cp1252"]))
    return text.encode(encoding, "replace")


def changed(base: bytes) -> st.SearchStrategy[bytes]:
    """The bytes, with some of them changed, cut out, doubled or put in."""
    places = st.integers(0, max(len(base) - 1, 0))
    small = st.binary(min_size=1, max_size=8) | st.sampled_from(
        [b"\xff" * 8, b"\x00" * 8, b"\x7f\xff\xff\xff", b"\x80\x80\x80\x80\x80\x01", b"PAR1"]
    )
    edit = st.tuples(st.sampled_from(["set", "cut", "insert", "double", "end"]), places, small)

    def apply(edits: list[tuple[str, int, bytes]]) -> bytes:
        data = bytearray(base)
        for what, place, bits in edits:
            if what == "set":
                data[place : place + len(bits)] = bits
            elif what == "cut":
                del data[place : place + len(bits)]
            elif what == "insert":
                data[place:place] = bits
            elif what == "double":
                data[place:place] = data[place : place + 64]
            else:
                del data[max(place, 4) :]
        return bytes(data)

    return st.lists(edit, min_size=1, max_size=6).map(apply)


@cache
def parquets() -> list[bytes]:
    """Parquet files of all sorts of columns; of the last no table can be made."""
    frame = pd.read_csv(io.StringIO(GOOD_CSV), parse_dates=["joined"])
    typed = pa.table(
        {
            "dates": pa.array([0, 1, None] * 8, pa.date32()),
            "words": pa.array(["a", None, "ü"] * 8).dictionary_encode(),
            "money": pa.array(["1.25", None, "-3.50"] * 8).cast(pa.decimal128(9, 2)),
            "flags": pa.array([True, None, False] * 8),
        }
    )
    refused = pa.table(
        {
            "lists": pa.array([[1], [], None] * 8),
            "bytes": pa.array([b"\xff", b"", None] * 8),
        }
    )
    files = []
    for table, options in (
        (pa.Table.from_pandas(frame), {}),
        (pa.Table.from_pandas(frame), {"compression": "NONE", "use_dictionary": False}),
        (typed, {"compression": "GZIP", "data_page_version": "2.0"}),
        (refused, {}),
    ):
        file = io.BytesIO()
        pq.write_table(table, file, **options)
        files.append(file.getvalue())
    return files


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | _CELLS
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def _places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value of a document."""
    found = [path]
    items: Any = ()
    if isinstance(document, dict):
        items = document.items()
    elif isinstance(document, list):
        items = enumerate(document[:20])
    for step, value in items:
        found += _places(value, (*path, step))
    return found


@st.composite
def changed_documents(draw: st.DrawFn, base: Any) -> Any:
    """The JSON document with some values in the place of others, gone, or under other names."""
    document = copy.deepcopy(base)
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from([p for p in _places(document) if p] or [(None,)]))
        if last is None:
            return draw(_VALUES)
        holder = document
        for step in path:
            holder = holder[step]
        what = draw(st.sampled_from(["set", "set", "delete", "rename", "copy"]))
        if what == "set":
            holder[last] = draw(_VALUES)
        elif what == "copy":
            other = draw(st.sampled_from(_places(document)))
            value = document
            for step in other:
                value = value[step]
            holder[last] = copy.deepcopy(value)
        elif what == "rename" and isinstance(holder, dict):
            holder[draw(st.text(max_size=6))] = holder.pop(last)
        else:
            del holder[last]
    return document


SCHEMA = {
    "columns": [
        {"name": "id", "kind": "identifier"},
        {"name": "age", "kind": "integer", "minimum": 0, "maximum": 120},
        {
            "name": "city",
            "kind": "categorical",
            "levels": ["A", "B", "C"],
            "missing": {"allowed": True, "markers": ["-"]},
        },
        {"name": "side", "kind": "categorical"},
        {"name": "joined", "kind": "datetime", "datetime_format": "%Y-%m-%d"},
        {"name": "score", "kind": "continuous", "decimals": 3, "drop": False},
    ],
    "rules": [
        {"rule": "score <= age", "keep": "hard"},
        {"rule": "combinations(city, side)", "keep": "hard"},
        {"rule": "age * 9 >= score or city == 'A'", "keep": "hard"},
        {"rule": "age >= score or age == 0", "keep": "off"},
        {"rule": "score ≈ 0.1 * age + rate[city] ± 9", "tables": {"rate": {"A": 0.5, "B": 1}}},
        {"rule": "determines(city; side)", "keep": "soft", "source": "found", "share": 0.5},
        {"rule": "is_missing(city) == is_missing(side)"},
        {"rule": "year(joined) > 1900 if age > 3 or city == 'A'", "keep": "hard"},
    ],
    "find_rules": True,
}
BODIES: tuple[tuple[type[Any], Any], ...] = (
    (NewSampleBody, {"rows": 5, "seed": 1, "format": "csv", "given": {"city": ["A", "B"]}}),
    (NewSampleBody, {"given_rows": [{"age": 21, "city": None}, {"city": "A"}]}),
    (NewSampleBody, {"rows": 3, "given": {"age": {"min": 1}}, "distribution": {"city": {"A": 1}}}),
    (NewScoresBody, {"rows": [{"age": 30, "city": "B"}], "draws": 16, "seed": 3}),
    (NewModelBody, {"dataset_id": "ds_1", "training": {"preset": "fast", "max_steps": 5}}),
)


@st.composite
def json_bodies(draw: st.DrawFn) -> bytes:
    """A number of the kind of body, and a JSON text: changed, nested, cut, or another encoding."""
    number = draw(st.integers(0, len(BODIES) - 1))
    document = draw(changed_documents(BODIES[number][1]))
    text = json.dumps(document, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    how = draw(st.sampled_from(["whole", "whole", "changed", "deep", "utf-16"]))
    if how == "changed":
        text = draw(changed(text))
    elif how == "deep":
        depth = draw(st.integers(1, 3_000))
        text = b'{"given":' * depth + text + b"}" * depth
    elif how == "utf-16":
        text = text.decode("utf-8", "replace").encode("utf-16")
    return bytes([number]) + text


@cache
def model() -> bytes:
    """A small model's artifact."""
    frame = pd.read_csv(io.StringIO(GOOD_CSV)).drop(columns=["id"])
    quick = {"max_steps": 4, "evaluate_every_steps": 2}
    fitted = Synthesizer.fit(frame, preset="paper-vae", seed=0, device="cpu", settings=quick)
    return fitted.to_bytes()


@st.composite
def artifacts(draw: st.DrawFn) -> bytes:
    """A model's file: its bytes changed, or its manifest changed and signed again."""
    if draw(st.booleans()):
        return draw(changed(model()))
    tensors, manifest = unpack_tensors(model())
    document = draw(changed_documents(manifest))
    tensors = dict(tensors)
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(tensors)))
        value = tensors.pop(name)
        if draw(st.booleans()):
            tensors[name] = value.reshape(-1)[: max(value.numel() // 2, 1)]
    try:
        return pack_tensors(tensors, document if isinstance(document, dict) else {})
    except (ValueError, TypeError):  # no JSON has that number
        return pack_tensors(tensors, {})


def read_csv(data: bytes) -> None:
    """As an upload is checked."""
    check_table(io.BytesIO(data), None, None, _SETTINGS)


def read_schema(document: Any) -> None:
    """As a schema that comes with an upload, and as one from a record."""
    if not isinstance(document, dict):
        return  # the REST call takes objects alone
    check_table(io.BytesIO(GOOD_CSV.encode()), document, None, _SETTINGS)


def read_body(data: bytes) -> None:
    """As the routes read bodies."""
    kind, _ = BODIES[(data or b"\0")[0] % len(BODIES)]
    body = kind.model_validate(read_json(data[1:]))
    columns = [
        {"name": "age", "kind": "integer", "minimum": 0, "maximum": 99},
        {"name": "city", "kind": "categorical", "levels": ["A", "B"]},
    ]
    schema = TableSchema.from_json({"columns": columns})
    if isinstance(body, NewSampleBody) and body.given_rows is not None:
        rows_to_csv(body.given_rows, schema, "/given_rows")
    if isinstance(body, NewModelBody):
        checked_training(body.training)


def read_model(data: bytes) -> None:
    """As an imported model is examined: read, and tried."""
    try_out(Synthesizer.from_bytes(data))


@dataclass(frozen=True)
class Subject:
    """A kind of input.

    Attributes:
        share: of all inputs.
    """

    inputs: Callable[[], st.SearchStrategy[Any]]
    read: Callable[[Any], None]
    share: float


def _any_parquet() -> st.SearchStrategy[bytes]:
    return st.sampled_from(parquets()).flatmap(changed)


def _gz() -> st.SearchStrategy[bytes]:
    packed = [
        gzip.compress(GOOD_CSV.encode()),
        gzip.compress(b"\x00" * (1 << 20)),
        gzip.compress(b""),
    ]
    whole = tables().map(gzip.compress)
    return st.sampled_from(packed).flatmap(changed) | whole | whole.flatmap(changed)


SUBJECTS = {
    "csv": Subject(lambda: tables() | changed(GOOD_CSV.encode()), read_csv, 0.25),
    "gz": Subject(_gz, read_csv, 0.15),
    "parquet": Subject(_any_parquet, read_csv, 0.2),
    "schema": Subject(lambda: changed_documents(SCHEMA), read_schema, 0.1),
    "json": Subject(json_bodies, read_body, 0.25),
    "artifact": Subject(artifacts, read_model, 0.05),
}
