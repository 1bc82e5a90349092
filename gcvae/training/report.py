"""Makes a report: reads the tables, measures the four parts, and judges them."""

from __future__ import annotations

from collections.abc import Sequence

from gcvae.evaluation.report.documents import TableReport, not_measured
from gcvae.evaluation.report.fidelity import fidelity_part
from gcvae.files.table_reader import Rows
from gcvae.progress import Report, report_to_nobody
from gcvae.training.report_rows import Model, rows_of_report

NOT_COVERED = (
    "Attacks that are not in the list: none found means none of these, with so many rows.",
    "Several releases: each further table that is drawn from a model tells more of its rows.",
    "People with several rows: each row counts as one person's.",
    "Identifiers, constants and dropped columns are not compared.",
)


def make_report(
    model: Model | None,
    real: Rows,
    holdout: Rows | None = None,
    synthetic: Rows | None = None,
    *,
    seed: int = 0,
    targets: Sequence[str] | None = None,
    progress: Report | None = None,
) -> TableReport:
    """Whether drawn rows are good, useful and safe.

    Args:
        model: A synthesizer; None where only a synthetic table is judged.
        real: The table that the model was trained on, in the order that it had then.
        holdout: Rows of the same source that had no part in training. Without them those are
            taken that training held back of the real table (`report_share`), if it did.
        synthetic: The table to judge; without it rows of the model are.
        seed: The same seed gives the same report.
        targets: Columns to predict; else all with enough rows.
        progress: Takes the share that is done; raise CancelledError in it to stop.

    Raises:
        TableError: A table can not be read, lacks a column of the model, or has too few rows.
        UnknownColumnError: A table has a column, or a target is one, that the model does not know.
    """
    report = progress or report_to_nobody
    report(0.0)
    rows = rows_of_report(model, real, holdout, synthetic, seed)
    report(0.1)
    parts = {
        "fidelity": fidelity_part(rows, seed),
        "utility": not_measured("this part is not written yet"),
        "likelihood": not_measured("this part is not written yet"),
        "privacy": not_measured("this part is not written yet"),
    }
    report(1.0)
    settings = {"targets": None if targets is None else list(targets)}
    return TableReport(parts, rows.counts(), settings, seed, NOT_COVERED)
