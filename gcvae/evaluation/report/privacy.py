"""Privacy part of a report: attacks that try to distinguish training rows from unseen rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gcvae.arrays import Numbers
from gcvae.evaluation.columns import row_keys
from gcvae.evaluation.report import attacks
from gcvae.evaluation.report.findings import (
    LEVEL,
    MATERIAL,
    Finding,
    bound_on_epsilon,
    corrected,
)
from gcvae.evaluation.report.intervals import difference_interval
from gcvae.evaluation.report.leaks import Leaks
from gcvae.evaluation.report.likelihood import UNLIKE
from gcvae.evaluation.report.parts import MORE_UNSEEN, NO_UNSEEN, Figure, Part, not_measured
from gcvae.evaluation.report.replay import replayed
from gcvae.evaluation.report.rows import ReportRows
from gcvae.progress import Report, report_to_nobody

MOST_ROWS = 2_500
"""Maximum number of attacked members (training rows), and of attacked unseen rows."""
LEAST_ROWS = 30
_LEAST_ISOLATED = 15
_LEVEL_OF_COPIES = 0.99
_MORE_COPIES_THAN_BY_CHANCE = 0.05


def privacy_part(
    rows: ReportRows,
    model_scores: Mapping[str, Numbers],
    n_rows: int,
    *,
    mismatch: str | None,
    seed: int,
    report: Report = report_to_nobody,
) -> Part:
    """Returns the privacy part of a report: the results of the attacks, and the counts of personal
    data and rare strings of the real table that occur in synthetic rows (replay).

    Args:
        rows: Rows of the report, in random order.
        model_scores: Scores of the first `n_rows` members and then of the first `n_rows` unseen
            rows, by attack: `likelihood` under the model, and `likelihood_ratio`, relative to a
            reference model. Empty if the model's scores cannot be used. Shape: (2 n_rows,) each.
        n_rows: Number of attacked members, and of attacked unseen rows.
        mismatch: Why unseen rows are not comparable with training rows, as a clause; else None.
        report: Called with the fraction of the work that is done, 0 to 1.
    """
    part = _attacked(rows, model_scores, n_rows, mismatch, seed, report)
    return _with_replay(part, rows)


def _attacked(
    rows: ReportRows,
    model_scores: Mapping[str, Numbers],
    n_rows: int,
    mismatch: str | None,
    seed: int,
    report: Report,
) -> Part:
    """Runs the attacks and returns the part without the replay figure."""
    if rows.unseen is None:
        reason = "attacks need unseen rows to compare with, and there are none"
        return not_measured(reason, NO_UNSEEN)
    if n_rows < LEAST_ROWS:
        few = f"{n_rows} unseen rows are too few; {LEAST_ROWS} are needed"
        return not_measured(few, MORE_UNSEEN)
    if len(rows.reference) < 10:
        return not_measured(f"{len(rows.reference)} reference rows are too few; 10 are needed")
    tables = rows.members.head(n_rows), rows.unseen.head(n_rows), rows.reference, rows.drawn
    targets = attacks.Targets.of(rows.schema, tables, seed)
    report(0.1)
    findings = [
        *_score_findings(targets, model_scores, rows.are_from_model, report),
        *_rate_findings(rows, targets, report),
    ]
    report(1.0)
    return _judged(corrected(findings), rows, mismatch)


def _with_replay(part: Part, rows: ReportRows) -> Part:
    """Returns the part with the replay figure; a single replayed cell makes the verdict red."""
    replay = replayed(
        rows.schema,
        rows.whole,
        rows.drawn,
        rare_rows=rows.rare_rows,
        with_levels=rows.has_model_schema,
    )
    tables = {**part.tables, "replay": replay.to_json()}
    if replay.count:
        tables["leaks"] = {"rows": "red", "model": "red"}
        part = replace(part, verdict="red", advice=_NO_REPLAY)
    figure = Figure("replay", _REPLAY, float(replay.count), 0.0, red=1.0)
    sentence = f"{part.sentence} {replay.sentence}"
    return replace(part, sentence=sentence, figures=(*part.figures, figure), tables=tables)


_REPLAY = "Personal data and rare texts of the real table in synthetic rows (cells)"
_NO_REPLAY = (
    "Do not share these rows. Declare what these columns contain (personal or kind in the schema),"
    " or drop them."
)


def _score_findings(
    targets: attacks.Targets,
    model_scores: Mapping[str, Numbers],
    are_from_model: bool,
    report: Report,
) -> list[Finding]:
    """Returns the findings of attacks that score each row: on all rows and on isolated rows."""
    scores = {**model_scores, **attacks.nearness_scores(targets)}
    report(0.3)
    scores["density_ratio"] = attacks.density_ratio_scores(targets)
    report(0.5)
    are_isolated, n = targets.are_isolated(), targets.n_rows
    findings = []
    for name, found in scores.items():
        counts = are_from_model or name not in model_scores
        members, unseen = found[:n], found[n:]
        findings.append(Finding(name, LABELS[name], members, unseen, True, counts))
        isolated = members[are_isolated[:n]], unseen[are_isolated[n:]]
        if min(map(len, isolated)) >= _LEAST_ISOLATED:
            label = f"{LABELS[name]}; isolated rows"
            findings.append(Finding(f"{name}_isolated", label, *isolated, True, counts))
    return findings


def _rate_findings(rows: ReportRows, targets: attacks.Targets, report: Report) -> list[Finding]:
    """Returns the findings of attacks that either succeed or fail for each row."""
    assert rows.unseen is not None
    n_all = min(len(rows.members), len(rows.unseen))
    tables = rows.members.head(n_all), rows.unseen.head(n_all), rows.drawn
    of_members, of_unseen, made = row_keys(tables, rows.schema)
    copied = np.isin(of_members, made), np.isin(of_unseen, made)
    are_isolated, n = targets.are_isolated(), targets.n_rows
    samples: dict[str, Sequence[npt.NDArray[Any]]] = {
        "copies": copied,
        "copies_isolated": (copied[0][:n][are_isolated[:n]], copied[1][:n][are_isolated[n:]]),
        "attribute_inference": np.split(attacks.inference_gains(targets), 2),
    }
    report(0.8)
    samples["linkability"] = np.split(attacks.linked_rows(targets), 2)
    samples["singling_out"] = np.split(attacks.singled_out(targets), 2)
    findings = []
    for name, pair in samples.items():
        members, unseen = (np.asarray(x, dtype=np.float64) for x in pair)
        if min(len(members), len(unseen)) >= _LEAST_ISOLATED:
            findings.append(Finding(name, LABELS[name], members, unseen, are_scores=False))
    return findings


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


def _judged(findings: list[Finding], rows: ReportRows, mismatch: str | None) -> Part:
    copies = exact_copies(rows)
    leaks = Leaks([f for f in findings if f.counts], len(rows.members))
    verdict, of_model, of_rows = leaks.of_model, leaks.of_model, leaks.of_rows
    sentence, advice = leaks.in_words()
    if rows.are_from_model and not any(f.is_of_model for f in findings):
        of_model = "not_measured" if of_model == "green" else of_model
        sentence += _NO_SCORES
    if copies["are_real_rows"]:
        verdict = of_rows = of_model = "red"
        sentence, advice = _REAL_ROWS, _NO_REAL_ROWS
        findings = [replace(f, counts=False) for f in findings]
    sentence += (
        f" Exact copies: {copies['drawn_rows_that_are_real']:,} of the {copies['drawn_rows']:,}"
        " synthetic rows are identical to a row of the real table; about"
        f" {copies['expected_of_real_rows']:,} of as many other real rows would be."
    )
    bound = None if mismatch else bound_on_epsilon(findings, rows.guarantee)
    epsilon = _epsilon(bound, rows)
    if epsilon.verdict == "red":
        verdict = of_rows = of_model = "red"
        sentence, advice = f"{sentence} {_BROKEN_GUARANTEE}", _NO_GUARANTEE
    if mismatch is not None:
        verdict = of_rows = of_model = "not_measured"
        sentence = f"Not measured: {mismatch}. The results of the attacks are no evidence."
        advice = UNLIKE
    elif not rows.is_training_table:
        sentence += f" {rows.why_unknown}: {_ALL_ARE_MEMBERS}"
    figures = tuple(
        Figure(
            f.name,
            f.label,
            f.area,
            0.5,
            f.corrected,
            unit="share",
            judged=f.verdict if f.counts else "shown",
        )
        for f in findings
    )
    tables = {
        "attacks": [f.to_json() for f in findings],
        "epsilon": bound,
        "exact_copies": copies,
        "leaks": {"rows": of_rows, "model": of_model},
        "settings": {
            "level": LEVEL,
            "n_attacks_corrected_for": len(leaks.findings),
            "material_from": MATERIAL,
            "isolated_share": attacks.ISOLATED_SHARE,
        },
    }
    return Part(verdict, sentence, advice, (*figures, epsilon), tables)


def _epsilon(bound: Mapping[str, Any] | None, rows: ReportRows) -> Figure:
    """Returns the figure of the lower bound on epsilon; its verdict is red if the bound reaches the
    epsilon that training guarantees."""
    label = "Privacy loss ε that the attacks prove: at least"
    if bound is None:
        return Figure("epsilon", label, None, note="no attack is meaningful here", judged="shown")
    if bound["promised"] is not None:
        promise = f"training guarantees at most {bound['promised']:g} (δ = {bound['delta']:g})"
    elif rows.are_from_model:
        promise = "no upper bound: the model was trained without differential privacy"
    else:
        promise = "no upper bound is known for a given table"
    note = (
        f"{promise}; confidence 95 %; an attack without errors on as many rows would prove"
        f" {bound['could_show']:.2g}"
    )
    return Figure("epsilon", label, bound["at_least"], red=bound["promised"], note=note)


_BROKEN_GUARANTEE = (
    "The attacks prove a larger ε than training guarantees: the guarantee does not hold."
)
_NO_GUARANTEE = "Do not share these rows or the model, and report this error to gcvae's developers."


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


def exact_copies(rows: ReportRows) -> dict[str, Any]:
    """Returns a JSON object with the counts of exact copies of real rows among synthetic rows.

    Returns:
        Members of the object:

        - `drawn_rows`: number of synthetic rows
        - `drawn_rows_that_are_real`: number of synthetic rows that equal a real row
        - `expected_of_real_rows`: number of copies to expect if the synthetic rows were unseen real
          rows, some of which equal by chance a row that training used
        - `are_real_rows`: whether the judged table was given by the user and contains unseen real
          rows; it is then not purely synthetic, and the attacks give no information
    """
    assert rows.unseen is not None
    seen, unseen, drawn = row_keys((rows.seen, rows.unseen, rows.drawn), rows.schema)
    n = min(len(seen), len(drawn))
    found, by_chance = (np.isin(unseen, table[:n]).astype(float) for table in (drawn, seen))
    more = difference_interval(found, by_chance, _LEVEL_OF_COPIES)[0]
    return {
        "drawn_rows": len(drawn),
        "drawn_rows_that_are_real": int(np.isin(drawn, np.concatenate([seen, unseen])).sum()),
        "expected_of_real_rows": round(float(np.isin(unseen, seen).mean()) * len(drawn)),
        "are_real_rows": not rows.are_from_model and more > _MORE_COPIES_THAN_BY_CHANCE,
    }
