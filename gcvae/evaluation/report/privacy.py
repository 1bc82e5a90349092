"""Privacy part of a report: attacks that try to distinguish training rows from unseen rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gcvae.arrays import Numbers
from gcvae.evaluation.privacy import dcr_share
from gcvae.evaluation.report import attacks
from gcvae.evaluation.report.copies import ExactCopies, exact_copies
from gcvae.evaluation.report.findings import LEVEL, MATERIAL, Finding, interval_of
from gcvae.evaluation.report.intervals import (
    area,
    area_interval,
    area_p_value,
    difference_p_value,
    holm,
    rate_interval,
)
from gcvae.evaluation.report.leaks import Leaks
from gcvae.evaluation.report.likelihood import UNLIKE
from gcvae.evaluation.report.parts import (
    GREEN,
    MORE_UNSEEN,
    NOT_MEASURED,
    RED,
    Figure,
    Part,
    not_measured,
)
from gcvae.evaluation.report.replay import Replay, replay_of
from gcvae.evaluation.report.rows import ReportRows
from gcvae.progress import Report, report_to_nobody

MOST_ROWS = 2_500
"""Maximum number of attacked members (training rows), and of attacked unseen rows."""
LEAST_ROWS = 30
_LEAST_ISOLATED = 15
_ROWS_FOR_RATE = 1_000
_FALSE_SHARE = 0.01


def privacy_part(
    rows: ReportRows,
    model_scores: Mapping[str, Numbers],
    n_rows: int,
    *,
    mismatch: str | None,
    seed: int,
    report: Report = report_to_nobody,
) -> Part:
    """Returns the privacy part of a report.

    It contains the results of the attacks, and the counts of personal data and rare strings of the
    real table that occur in synthetic rows (replay).

    Args:
        rows: Rows of the report, in random order.
        model_scores: Scores of the first `n_rows` members and then of the first `n_rows` unseen
            rows, by attack: `likelihood` under the model, and `likelihood_ratio`, relative to a
            reference model. Empty if the model's scores cannot be used. Shape: (2 n_rows,) each.
        n_rows: Number of attacked members, and of attacked unseen rows.
        mismatch: Why unseen rows are not comparable with training rows, as a clause; else None.
        report: Called with the fraction of the work that is done, 0 to 1.
    """
    part = _attacked(rows, model_scores, n_rows, mismatch=mismatch, seed=seed, report=report)
    return _with_replay(part, replay_of(rows))


def _attacked(
    rows: ReportRows,
    model_scores: Mapping[str, Numbers],
    n_rows: int,
    *,
    mismatch: str | None,
    seed: int,
    report: Report,
) -> Part:
    """Runs the attacks and returns the part without the replay figure."""
    if rows.unseen is None:
        return not_measured(
            "attacks need unseen rows to compare with, and there are none",
            "Give a holdout, or train with report_share=0.1.",
        )
    if n_rows < LEAST_ROWS:
        return not_measured(
            f"{n_rows} unseen rows are too few; {LEAST_ROWS} are needed", MORE_UNSEEN
        )
    if len(rows.reference) < 10:
        return not_measured(f"{len(rows.reference)} reference rows are too few; 10 are needed")
    tables = rows.members.head(n_rows), rows.unseen.head(n_rows), rows.reference, rows.drawn
    targets = attacks.Targets.of(rows.schema, tables, seed)
    report(0.1)
    findings = [
        *_score_findings(targets, model_scores, rows.are_from_model, report),
        *_rate_findings(rows, targets, report),
    ]
    findings = _corrected(findings)
    report(1.0)
    return _judged(findings, rows, exact_copies(rows), mismatch, seed)


def _with_replay(part: Part, replay: Replay) -> Part:
    """Returns the part with the replay figure; a single replayed cell makes the verdict red."""
    figure = Figure("replay", _REPLAY, float(replay.count), 0.0, red=1.0)
    part = replace(
        part,
        sentence=f"{part.sentence} {replay.sentence}",
        figures=(*part.figures, figure),
        tables={**part.tables, "replay": replay.to_json()},
    )
    if not replay.count:
        return part
    return replace(
        part,
        verdict=RED,
        advice=_NO_REPLAY,
        tables={**part.tables, "leaks": {"rows": RED, "model": RED}},
    )


_REPLAY = "Personal data and rare texts of the real table in synthetic rows (cells)"
_NO_REPLAY = (
    "Do not share these rows. Declare what these columns contain (personal in the schema), or drop"
    " them."
)


def _score_findings(
    targets: attacks.Targets,
    model_scores: Mapping[str, Numbers],
    are_from_model: bool,
    report: Report,
) -> list[Finding]:
    """Returns the findings of attacks that score rows, on all rows and on isolated rows."""
    scores = {**model_scores, **attacks.nearness_scores(targets)}
    report(0.3)
    scores["density_ratio"] = attacks.density_ratio_scores(targets)
    report(0.5)
    are_isolated = targets.are_isolated()
    n = targets.n_rows
    findings = []
    for name, found in scores.items():
        counts = are_from_model or name not in model_scores
        members, unseen = found[:n], found[n:]
        findings.append(_of_scores(name, LABELS[name], members, unseen, counts))
        isolated = members[are_isolated[:n]], unseen[are_isolated[n:]]
        if min(map(len, isolated)) >= _LEAST_ISOLATED:
            label = f"{LABELS[name]}; isolated rows"
            findings.append(_of_scores(f"{name}_isolated", label, *isolated, counts))
    return findings


def _rate_findings(rows: ReportRows, targets: attacks.Targets, report: Report) -> list[Finding]:
    """Returns the findings of attacks that either succeed or fail for each row."""
    assert rows.unseen is not None
    n_all = min(len(rows.members), len(rows.unseen))
    copied = attacks.copied_rows(
        rows.members.head(n_all), rows.unseen.head(n_all), rows.drawn, rows.schema
    )
    are_isolated, n = targets.are_isolated(), targets.n_rows
    samples = {
        "copies": copied,
        "copies_isolated": (copied[0][:n][are_isolated[:n]], copied[1][:n][are_isolated[n:]]),
        "attribute_inference": attacks.inference_gains(targets),
    }
    report(0.8)
    samples["linkability"] = attacks.linked_rows(targets)
    samples["singling_out"] = attacks.singled_out(targets)
    return [
        _of_rates(name, LABELS[name], *(np.asarray(x, dtype=np.float64) for x in pair))
        for name, pair in samples.items()
        if min(len(pair[0]), len(pair[1])) >= _LEAST_ISOLATED
    ]


LABELS = {
    "likelihood": "The model gives training rows a higher likelihood",
    "likelihood_ratio": "The model gives training rows a higher likelihood than one without them",
    "distance": "Synthetic rows are closer to training rows",
    "distance_ratio": "Synthetic rows are closer to training rows, relative to other real rows",
    "density_ratio": "Synthetic rows are denser around training rows",
    "copies": "Synthetic rows are exact copies of training rows",
    "copies_isolated": "Synthetic rows are exact copies of isolated training rows",
    "attribute_inference": "Synthetic rows help to guess an unknown cell of a training row",
    "linkability": "Synthetic rows help to link two halves of a training row",
    "singling_out": "Synthetic rows single out a training row",
}


def _of_scores(name: str, label: str, members: Numbers, unseen: Numbers, counts: bool) -> Finding:
    return Finding(
        name,
        label,
        area(members, unseen),
        area_interval(members, unseen, LEVEL),
        area_p_value(members, unseen),
        min(len(members), len(unseen)),
        (members, unseen),
        are_scores=True,
        counts=counts,
        more=_rates_at_few_false(members, unseen),
    )


def _of_rates(name: str, label: str, members: Numbers, unseen: Numbers) -> Finding:
    return Finding(
        name,
        label,
        0.5 + float(members.mean() - unseen.mean()) / 2,
        interval_of((members, unseen), False, LEVEL),
        difference_p_value(members, unseen),
        min(len(members), len(unseen)),
        (members, unseen),
        are_scores=False,
        more={"rate_members": float(members.mean()), "rate_unseen": float(unseen.mean())},
    )


def _corrected(findings: list[Finding]) -> list[Finding]:
    """Returns the findings, corrected for the number of attacks that contribute to the verdict."""
    judged = [f for f in findings if f.counts]
    p_values = iter(holm([f.p for f in judged]))
    return [
        f.corrected_for(len(judged), next(p_values)) if f.counts else f.corrected_for(1, f.p)
        for f in findings
    ]


def _rates_at_few_false(members: Numbers, unseen: Numbers) -> dict[str, Any]:
    """Returns the true positive rate at 1 % false positives, and the epsilon that it implies.

    The threshold is set on one half of the unseen rows; rates are measured on the other half and
    the members. The result is None if there are fewer than 1,000 members or unseen rows.
    """
    if min(len(members), len(unseen)) < _ROWS_FOR_RATE:
        return {"at_one_percent": None}
    half = len(unseen) // 2
    threshold = np.quantile(unseen[:half], 1.0 - _FALSE_SHARE, method="higher")
    true, false = int((members > threshold).sum()), int((unseen[half:] > threshold).sum())
    n, n_false = len(members), len(unseen) - half
    true_interval = rate_interval(true, n, LEVEL)
    false_interval = rate_interval(false, n_false, LEVEL)
    most = rate_interval(n, n, LEVEL)[0], rate_interval(0, n_false, LEVEL)[1]
    return {
        "at_one_percent": {
            "true_positives": true / n,
            "true_positives_interval": list(true_interval),
            "false_positives": false / n_false,
            "false_positives_interval": list(false_interval),
            "epsilon_at_least": _epsilon(true_interval[0], false_interval[1]),
            "epsilon_that_could_be_shown": _epsilon(*most),
        }
    }


def _epsilon(true: float, false: float) -> float:
    """Returns max(0, log(TPR / FPR)), a lower bound on epsilon in pure differential privacy."""
    return max(0.0, math.log(true / false)) if true > 0 and false > 0 else 0.0


def _judged(
    findings: list[Finding], rows: ReportRows, copies: ExactCopies, mismatch: str | None, seed: int
) -> Part:
    leaks = Leaks([f for f in findings if f.counts], len(rows.members))
    verdict, of_model, of_rows = leaks.of_model, leaks.of_model, leaks.of_rows
    sentence, advice = leaks.in_words()
    if rows.are_from_model and not any(f.is_of_model for f in findings):
        of_model = NOT_MEASURED if of_model == GREEN else of_model
        sentence += _NO_SCORES
    if copies.are_real_rows:
        verdict = of_rows = of_model = RED
        sentence, advice = _REAL_ROWS, _NO_REAL_ROWS
        findings = [replace(f, counts=False) for f in findings]
    sentence += f" {copies.sentence}"
    if mismatch is not None:
        verdict = of_rows = of_model = NOT_MEASURED
        sentence = f"Not measured: {mismatch}. The results of the attacks are no evidence."
        advice = UNLIKE
    elif not rows.is_training_table:
        sentence += f" {rows.why_unknown}: {_ALL_ARE_MEMBERS}"
    figures = tuple(
        Figure(f.name, f.label, f.area, 0.5, f.corrected, unit="share", judged=f.shown_verdict)
        for f in findings
    )
    tables = {
        "attacks": [f.to_json() for f in findings],
        "exact_copies": copies.to_json(),
        "leaks": {"rows": of_rows, "model": of_model},
        "descriptive": _descriptive(rows, seed),
        "settings": {
            "level": LEVEL,
            "n_attacks_corrected_for": len(leaks.findings),
            "material_from": MATERIAL,
            "isolated_share": attacks.ISOLATED_SHARE,
        },
    }
    return Part(verdict, sentence, advice, figures, tables)


_NO_SCORES = (
    " The scores of the model were not attacked because scoring is off. Whether its file, whose"
    " weights other programs can use, may be shared was therefore not judged."
)
_ALL_ARE_MEMBERS = (
    "rows that were not used in training count as training rows here, which can hide leaks but"
    " cannot show false ones."
)
_REAL_ROWS = (
    "Many of the judged rows are real rows: they are exact copies of rows of the real table, also"
    " of rows that were kept for this comparison. Attacks that look for training rows are not"
    " meaningful then."
)
_NO_REAL_ROWS = (
    "Do not share this table: it contains the real rows. Check that the right file was given, and"
    " judge rows that a model generated."
)


def _descriptive(rows: ReportRows, seed: int) -> dict[str, Any]:
    """Returns the share of synthetic rows nearer to members than to unseen rows, which does not
    contribute to the verdict because distances miss leaks."""
    assert rows.unseen is not None
    n = min(len(rows.members), len(rows.unseen), MOST_ROWS)
    found = dcr_share(
        rows.members.head(n), rows.unseen.head(n), rows.drawn, rows.schema, n_rows=1_000, seed=seed
    )
    return {
        "share_nearer_to_members": found.value,
        "standard_error": found.standard_error,
        "note": "descriptive only: distances can miss leaks",
    }
