"""Short statements about a model, for its text representation and command-line output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gcvae.schema.columns import TableSchema


def model_facts(
    schema: TableSchema, preset: str, record: Mapping[str, Any], notes: Sequence[str]
) -> dict[str, str]:
    """Returns short statements about the model by name; each can be read alone.

    Args:
        schema: Schema of the model.
        preset: Name of the preset.
        record: The training record.
        notes: Data-quality warnings. They quote cells of the table, so only their number is given.
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
