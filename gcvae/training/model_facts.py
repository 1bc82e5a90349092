"""Short statements about a model, for its text representation and command-line output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gcvae.schema.columns import TableSchema


def model_facts(
    schema: TableSchema, preset: str, record: Mapping[str, Any], notes: Sequence[str]
) -> dict[str, str]:
    """Returns short statements about a model by name, each understandable by itself.

    Args:
        record: Training record: settings and results of training.
        notes: Data-quality warnings. They may quote cells of the table, so the statement contains
            only their number.
    """
    n_modelled = sum(column.is_modelled for column in schema)
    facts = {
        "preset": f"preset {preset}",
        "columns": f"{len(schema)} columns ({n_modelled} modelled)",
    }
    if record.get("is_minimal"):
        facts["training"] = "minimal: what is known of the training was left out"
    else:
        facts["rows"] = f"trained on {record['rows']:,} rows"
        facts["held-out log-likelihood"] = (
            f"held-out log-likelihood {record['bound_held_out']:.2f} nats per row"
        )
    if rules := record.get("rules"):
        facts["rules"] = f"{len(rules)} rule{'s' * (len(rules) > 1)} kept"
    if notes:
        facts["table"] = f"notes on the table: {len(notes)} (table_notes)"
    return facts
