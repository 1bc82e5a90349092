"""Reads and writes the model file of a database: a safetensors file that contains the model file of
each table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from gcvae.artifact.file import packed_bytes, unpacked_bytes
from gcvae.codec.context_codec import ContextCodec
from gcvae.codec.key_parts import KeyPart
from gcvae.linked.database_part import DatabasePart
from gcvae.linked.plan import TablePlan
from gcvae.linked.random_effect import RandomEffect
from gcvae.linked.sequences import Clock
from gcvae.linked.table_model import (
    RowOrder,
    TableModel,
)
from gcvae.linked.totals import Total
from gcvae.rules.reduction import Reduction
from gcvae.schema.columns import TableSchema
from gcvae.synthesizer import Synthesizer

VERSION = 3


def written_part(prefix: str, part: DatabasePart, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """Returns the JSON document of a fitted table, and adds the content of its models and stored
    rows to `tensors`.

    Args:
        prefix: Prefix of the keys under which the table's content is added to `tensors`.
        part: Fitted table.
        tensors: Content of the file as tensors of bytes, which this function extends.
    """
    found: dict[str, Any] = {
        "schema": part.schema.to_json(),
        "plan": {
            "parent": part.plan.parent,
            "is_kept": part.plan.is_catalogue,
            "copied": dict(part.plan.copied),
            "order": part.plan.order,
        },
        "n_rows": part.n_rows,
        "beside": dict(part.child_columns),
        "context": part.context,
        "borrowed": {
            str(i): {"columns": columns, "codec": codec.to_json()}
            for i, (columns, codec) in part.borrowed.items()
        },
        "degrees": {str(i): values.tolist() for i, values in part.degrees.items()},
        "totals": [asdict(total) for total in part.totals],
        "order": part.column_names,
        "outside": dict(part.parent_columns),
        "key_dtypes": dict(part.key_dtypes),
        "unlike": {str(i): others for i, others in part.disjoint.items()},
        "grids": dict(part.grids),
        "key_parts": {c: [each.to_json() for each in p] for c, p in part.key_parts.items()},
        "household_tails": part.household_tails,
        "outer_schema": part.reduction.schema.to_json(),
        "outer_rules": part.reduction.to_json(),
    }
    if part.catalogue is not None:
        buffer = BytesIO()
        part.catalogue.to_parquet(buffer, index=False)
        tensors[f"{prefix}.kept"] = packed_bytes(buffer.getvalue())
        found["kept"] = f"{prefix}.kept"
    if part.model is not None:
        model = part.model
        tensors[f"{prefix}.rows"] = packed_bytes(model.rows.to_bytes())
        document: dict[str, Any] = {
            "columns": model.columns,
            "rows": f"{prefix}.rows",
            "effect": None if model.effect is None else model.effect.to_json(),
            "told": model.previous_columns,
        }
        if model.sequence is not None:
            sequence = model.sequence
            document["sequence"] = {
                "column": sequence.column,
                "clock": asdict(sequence.clock),
                "dtype": sequence.dtype,
            }
            if isinstance(sequence.gaps, float):
                document["sequence"]["gap"] = sequence.gaps
            else:
                tensors[f"{prefix}.gaps"] = packed_bytes(sequence.gaps.to_bytes())
                document["sequence"]["gaps"] = f"{prefix}.gaps"
        found["model"] = document
    return found


def read_part(document: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> DatabasePart:
    """Reads a fitted table. Its arguments are the JSON document that `written_part` returns, and
    the tensors to which `written_part` adds the content of the table."""
    plan, kept, model = document["plan"], None, None
    if "kept" in document:
        kept = pd.read_parquet(BytesIO(unpacked_bytes(tensors[document["kept"]])))
    if "model" in document:
        found = document["model"]
        sequence = None
        if "sequence" in found:
            stored = found["sequence"]
            gaps: Synthesizer | float = (
                float(stored["gap"])
                if "gap" in stored
                else Synthesizer.from_bytes(unpacked_bytes(tensors[stored["gaps"]]))
            )
            sequence = RowOrder(stored["column"], Clock(**stored["clock"]), stored["dtype"], gaps)
        model = TableModel(
            tuple(found["columns"]),
            Synthesizer.from_bytes(unpacked_bytes(tensors[found["rows"]])),
            None if found["effect"] is None else RandomEffect.from_json(found["effect"]),
            sequence,
            tuple(found["told"]),
        )
    copied = {c: (int(i), str(other)) for c, (i, other) in plan["copied"].items()}
    return DatabasePart(
        TableSchema.from_json(document["schema"]),
        TablePlan(plan["parent"], plan["is_kept"], copied, plan["order"]),
        document["n_rows"],
        model,
        {name: tuple(columns) for name, columns in document["beside"].items()},
        tuple(document["context"]),
        {
            int(i): (tuple(each["columns"]), ContextCodec.from_json(each["codec"]))
            for i, each in document["borrowed"].items()
        },
        {int(i): np.array(values) for i, values in document["degrees"].items()},
        kept,
        tuple(Total(**each | {"factors": tuple(each["factors"])}) for each in document["totals"]),
        tuple(document["order"]),
        Reduction.from_json(
            document["outer_rules"], TableSchema.from_json(document["outer_schema"])
        ),
        dict(document["outside"]),
        dict(document["key_dtypes"]),
        {int(i): tuple(others) for i, others in document["unlike"].items()},
        {name: (grid[0], grid[1]) for name, grid in document["grids"].items()},
        {
            column: tuple(KeyPart.from_json(each) for each in parts)
            for column, parts in document["key_parts"].items()
        },
        tuple(document["household_tails"]),
    )
