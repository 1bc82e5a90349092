"""Makes a report: reads the tables, measures the four parts, and judges them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gcvae.evaluation.report import fidelity, privacy, utility
from gcvae.evaluation.report.documents import PARTS, TableReport
from gcvae.evaluation.report.fidelity import fidelity_part
from gcvae.evaluation.report.likelihood import LEAST_ROWS, likelihood_part
from gcvae.evaluation.report.privacy import privacy_part
from gcvae.evaluation.report.rows import ReportRows
from gcvae.evaluation.report.utility import utility_part
from gcvae.files.table_reader import Rows
from gcvae.progress import Report, report_to_nobody
from gcvae.scoring.served_scores import FULL
from gcvae.training.held_back import MOST_REPORT_ROWS
from gcvae.training.reporting.model_scores import DRAWS, model_scores
from gcvae.training.reporting.report_rows import Model, rows_of_report

NOT_COVERED = (
    "Other attacks: “no leak found” refers to the listed attacks only.",
    "Repeated releases: each further synthetic table of a model reveals more of its training rows.",
    "People with several rows: each row is treated as a different person.",
    "Identifiers, constants and dropped columns: they are not compared.",
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
    """Returns whether drawn rows are good, useful and safe.

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
    like_real, mismatch = fidelity_part(rows, seed, _share_of(report, 0.1, 0.35))
    useful = utility_part(rows, targets, seed, _share_of(report, 0.35, 0.6))
    n_rows = _rows_attacked(rows)
    scores = None
    if model is not None and model.scoring == FULL and n_rows >= LEAST_ROWS:
        scores = model_scores(model, rows, n_rows, seed, _share_of(report, 0.6, 0.8))
    likely = likelihood_part(
        None if scores is None else scores.likelihoods, _why_no_likelihood(model, n_rows), mismatch
    )
    private = privacy_part(
        rows,
        {} if scores is None else scores.attacks,
        n_rows,
        mismatch=mismatch,
        seed=seed,
        report=_share_of(report, 0.8, 1.0),
    )
    parts = dict(zip(PARTS, (like_real, useful, likely, private), strict=True))
    report(1.0)
    settings = _settings(n_rows, targets)
    return TableReport(
        parts,
        rows.counts(),
        rows.table_rows,
        settings,
        seed,
        _not_covered(rows),
        rows.are_from_model,
    )


def _not_covered(rows: ReportRows) -> tuple[str, ...]:
    """What the report does not say; that rows were left out, where some were."""
    counts = rows.counts()
    if rows.are_from_model:  # of which there are as many as one likes
        del counts["drawn"]
    if MOST_REPORT_ROWS not in counts.values():
        return NOT_COVERED
    return (
        *NOT_COVERED,
        f"Rows beyond {MOST_REPORT_ROWS:,} of each group: the report uses a random sample of that"
        " many and cannot find what occurs only in the others.",
    )


def _rows_attacked(rows: ReportRows) -> int:
    """Members, and unseen rows, that are scored and attacked: as many of each."""
    n_unseen = 0 if rows.unseen is None else len(rows.unseen)
    return min(len(rows.members), n_unseen, privacy.MOST_ROWS)


def _why_no_likelihood(model: Model | None, n_rows: int) -> str:
    if model is None:
        return "a table was given without a model"
    if model.scoring != FULL:
        return f"the scoring of the model is restricted ({model.scoring})"
    return f"{n_rows} unseen rows are too few; {LEAST_ROWS} are needed"


def _settings(n_rows: int, targets: Sequence[str] | None) -> dict[str, Any]:
    """Sample sizes and options."""
    return {
        "rows_attacked_of_each_class": n_rows,
        "most_rows_attacked": privacy.MOST_ROWS,
        "most_rows_compared": fidelity.MOST_ROWS,
        "most_rows_of_a_classifier": fidelity.MOST_TREE_ROWS,
        "most_rows_learned_from": utility.MOST_ROWS,
        "most_targets": utility.MOST_TARGETS,
        "draws_of_a_likelihood": DRAWS,
        "most_drawn_rows": MOST_REPORT_ROWS,
        "targets": None if targets is None else list(targets),
    }


def _share_of(report: Report, start: float, end: float) -> Report:
    """What takes the progress of a part."""
    return lambda share: report(start + (end - start) * share)
