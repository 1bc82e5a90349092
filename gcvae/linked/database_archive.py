"""Describes a fitted database as JSON, and writes generated tables to ZIP files."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from gcvae.cells.data_frames import with_columns
from gcvae.cells.values import parse_table
from gcvae.errors import Problem, TableError, UnknownColumnError, json_pointer
from gcvae.files.delimited import without_formulas
from gcvae.files.table_archives import PackedTable, write_archive
from gcvae.files.to_arrow import arrow_table
from gcvae.linked.database_part import DatabasePart
from gcvae.linked.database_schema import DatabaseSchema
from gcvae.linked.entities import Split
from gcvae.schema.columns import TableSchema
from gcvae.schema.suggestions import unknown_name, unknown_names


def database_record(
    schema: DatabaseSchema,
    parts: Mapping[str, DatabasePart],
    splits: Sequence[Split],
    plans: Mapping[str, str],
) -> dict[str, Any]:
    """Describes a fit as a JSON document.

    For each table, the document contains the numbers of `rows` and `columns`, the `names` of the
    columns, the name of the `parent` table (null without one), whether the table `is_copied`
    unchanged, and in words how it is generated (`plan`). Its member `splits` lists the tables that
    were divided into a table of entities and a table of their rows.
    """
    records = [p.model.rows.training_record for p in parts.values() if p.model is not None]
    names = written_columns(parts, splits)
    tables = {
        name: {
            "rows": part.n_rows,
            "columns": len(part.column_names),
            "names": [*names.get(name, part.column_names)],
            "parent": None
            if part.plan.parent is None
            else schema[name].foreign_keys[part.plan.parent].table,
            "is_copied": part.catalogue is not None,
            "plan": plans[name],
        }
        for name, part in parts.items()
    }
    made = {split.parent for split in splits}
    return {
        **({"preset": records[0]["preset"]} if records else {}),
        "rows": sum(table["rows"] for name, table in tables.items() if name not in made),
        "tables": tables,
        "splits": [
            {"table": s.table, "entities": s.parent, "key": [*s.key], "determines": [*s.determined]}
            for s in splits
        ],
    }


def written_columns(
    parts: Mapping[str, DatabasePart], splits: Sequence[Split]
) -> dict[str, tuple[str, ...]]:
    """Returns the columns of the tables that users pass and receive, by table name. A table of
    entities exists only in the model, so its columns count as columns of the table of its rows."""
    found = {name: part.column_names for name, part in parts.items()}
    for split in reversed(splits):
        del found[split.parent]
        found[split.table] = split.columns
    return found


def refuse_other_tables(
    tables: Mapping[str, Collection[str]],
    columns: Mapping[str, Collection[str]],
    schema: DatabaseSchema,
    copied: Collection[str],
) -> None:
    """Checks that tables passed to a model are those of its database, with the same columns.

    Args:
        tables: Column names of each table that was passed, by table name.
        columns: Column names of each table of the model, by table name.
        schema: Keys of the model's tables.
        copied: Catalogues, the tables that the model copies unchanged; they may be missing.

    Raises:
        TableError: A table is unknown or missing, or a column is missing.
        UnknownColumnError: The model has no such column.
    """
    problems = [
        unknown_name(f"the model has no table {name!r}", name, columns)
        for name in tables
        if name not in columns
    ]
    problems += [
        Problem(f"there is no table {name!r}", expected="every table of the model")
        for name in columns
        if name not in tables and name not in copied
    ]
    unknown = []
    for name in (name for name in columns if name in tables):
        keys, place = schema[name], json_pointer("tables", name)
        of_keys = {*keys.primary_key, *keys.referring}
        for column in (c for c in columns[name] if c not in tables[name]):
            use = ", which is part of a key," if column in of_keys else ""
            message = f"table {name!r}: column {column!r}{use} is absent"
            expected = ", ".join(columns[name])
            problems.append(Problem(message, place, column=column, expected=expected))
        others = [(c, {"column": c}) for c in tables[name] if c not in columns[name]]
        message = f"table {name!r} of the model has no such column"
        unknown += [
            replace(problem, pointer=place)
            for problem in unknown_names(message, others, columns[name])
        ]
    if problems:
        raise TableError(*problems)
    if unknown:
        raise UnknownColumnError(*unknown)


def written_schemas(
    parts: Mapping[str, DatabasePart], splits: Sequence[Split]
) -> dict[str, TableSchema]:
    """Returns the column schemas of the generated tables, by table name.

    The model replaces the values of some columns by their indices (`Split.levels`). These columns
    are left out, because their schemas describe the indices, not the values.
    """
    found = {name: part.schema for name, part in parts.items()}
    for split in reversed(splits):
        columns = {c.name: c for c in (*found[split.table], *found.pop(split.parent))}
        if split.levels:
            del columns[split.key[-1]]
        listed = tuple(columns[name] for name in split.columns if name in columns)
        found[split.table] = replace(found[split.table], columns=listed)
    return found


def schemas_of_texts(
    record: Mapping[str, Any], schemas: Mapping[str, TableSchema]
) -> dict[str, TableSchema]:
    """Returns the schemas of the tables that were uploaded as text files, not as Parquet files. The
    member `tables` of the upload's `record` contains the `format` of each table."""
    formats = {name: table.get("format", "parquet") for name, table in record["tables"].items()}
    return {name: s for name, s in schemas.items() if formats.get(name) not in (None, "parquet")}


def write_database(
    target: BinaryIO,
    tables: Mapping[str, pd.DataFrame],
    format: str,
    schemas: Mapping[str, TableSchema],
    *,
    typed: Mapping[str, TableSchema] | None = None,
    escape_formulas: bool = False,
) -> dict[str, PackedTable]:
    """Writes generated tables to a ZIP file. Returns the byte range of each table in that file.

    Args:
        target: Empty file.
        tables: Generated tables by name.
        format: Format of the files in the archive, `csv` or `parquet`.
        schemas: Schemas by table name, which contain the separators of CSV files.
        typed: Schemas by table name (`schemas_of_texts`). In Parquet files, the cells of these
            tables are converted from text to the dtypes of their columns; None converts none.
        escape_formulas: Whether to escape cells of CSV files that a spreadsheet would run as
            formulas (`gcvae.files.table_stream`).
    """
    write = {
        name: partial(_write_csv, frame, schemas[name].separator, escape_formulas)
        if format == "csv"
        else partial(_write_parquet, frame, (typed or {}).get(name))
        for name, frame in tables.items()
    }
    files = [(f"{name}.{format}", how) for name, how in write.items()]
    packed = write_archive(target, files)
    return {name: packed[f"{name}.{format}"] for name in tables}


def _write_csv(
    frame: pd.DataFrame, separator: str, escape_formulas: bool, sink: io.RawIOBase
) -> None:
    if escape_formulas:
        frame = with_columns(frame, {c: _escaped(frame[c]) for c in _texts(frame)})
    text = io.TextIOWrapper(sink, encoding="utf-8", newline="")  # type: ignore[type-var]
    frame.to_csv(text, index=False, lineterminator="\n", sep=separator)
    text.detach()


def _write_parquet(frame: pd.DataFrame, schema: TableSchema | None, sink: io.RawIOBase) -> None:
    if schema is None:
        parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), sink)
        return
    plain = [
        replace(c, dtype=None, parquet_type=None) if (c.dtype, c.parquet_type) == _AS_TEXT else c
        for c in schema
        if c.name in frame
    ]
    schema = replace(schema, columns=tuple(plain))
    values = parse_table(frame[list(schema.names)], schema)
    table = arrow_table(values, schema)
    for name in (name for name in frame.columns if name not in schema):
        table = table.append_column(name, pa.array(frame[name], from_pandas=True))
    parquet.write_table(table.select(list(frame.columns)), sink)


_AS_TEXT = ("object", "string")
"""Data types of a text column in data frames and Parquet files."""


def _texts(frame: pd.DataFrame) -> Collection[str]:
    return [c for c in frame.columns if pd.api.types.infer_dtype(frame[c], skipna=True) == "string"]


def _escaped(cells: pd.Series[Any]) -> pd.Series[Any]:
    texts = pa.array(cells, pa.string(), from_pandas=True).dictionary_encode()
    escaped: pd.Series[Any] = without_formulas(texts).to_pandas().astype(object)
    return escaped.set_axis(cells.index)
