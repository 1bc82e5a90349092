"""Privacy: attacks that tell rows of training from unseen ones, and the verdict on all of them.

    leak found      Holm's corrected p-value is below 0.05, and the attack is right more often
    material        and the lower end of the corrected interval is at 0.55 or above
    none found      neither; the area that would have been seen stands beside it

An attack with two rates r (members) and s (unseen rows) counts as the area 0.5 + (r - s) / 2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gcvae.evaluation.privacy import dcr_share
from gcvae.evaluation.report import attacks
from gcvae.evaluation.report.copies import ExactCopies, exact_copies
from gcvae.evaluation.report.documents import (
    AMBER,
    GREEN,
    MORE_UNSEEN,
    NOT_MEASURED,
    RED,
    SHOWN,
    Figure,
    Part,
    not_measured,
    percent,
)
from gcvae.evaluation.report.intervals import (
    area,
    area_interval,
    area_p_value,
    difference_interval,
    difference_p_value,
    holm,
    rate_interval,
    visible_area,
)
from gcvae.evaluation.report.likelihood import UNLIKE
from gcvae.evaluation.report.rows import ReportRows
from gcvae.progress import Report, report_to_nobody

Numbers = npt.NDArray[np.float64]

MOST_ROWS = 2_500
"""Members, and unseen rows, that are attacked."""
LEAST_ROWS = 30
_LEAST_ISOLATED = 15
_LEVEL = 0.95
MATERIAL = 0.55
_ROWS_FOR_RATE = 1_000
_FALSE_SHARE = 0.01
MOST_VISIBLE = 0.65
"""Where only larger areas would have been seen, that nothing was found says nothing."""
NEVER_SAFE = (
    "None found is no proof that the rows are safe. Before you hand them on, see what this report"
    " does not cover: above all, whether one row is one person."
)


@dataclass(frozen=True)
class Finding:
    """What one attack found.

    Attributes:
        area: 0.5 is chance. Of an attack with two rates 0.5 + (r - s) / 2.
        interval: At 95 %, uncorrected.
        corrected: Bonferroni's, over all attacks of the report.
        p: Uncorrected; `p_holm` is corrected.
        n: Members, and unseen rows.
        counts: Whether it has a part in the verdict.
        more: Other figures of the attack.
    """

    name: str
    label: str
    area: float
    interval: tuple[float, float]
    p: float
    n: int
    samples: tuple[Numbers, Numbers]
    are_scores: bool
    counts: bool = True
    corrected: tuple[float, float] = (math.nan, math.nan)
    p_holm: float = math.nan
    visible: float = math.nan
    more: Mapping[str, Any] | None = None

    @property
    def verdict(self) -> str:
        """By the corrected p-value and the corrected interval."""
        if self.p_holm >= 1.0 - _LEVEL or self.area <= 0.5:
            return GREEN
        return RED if self.corrected[0] >= MATERIAL else AMBER

    @property
    def shown_verdict(self) -> str:
        """The verdict, or that it has none because the finding does not count."""
        return self.verdict if self.counts else SHOWN

    def corrected_for(self, n_attacks: int, p_holm: float) -> Finding:
        """The finding among so many."""
        level = 1.0 - (1.0 - _LEVEL) / n_attacks
        return replace(
            self,
            corrected=_interval(self.samples, self.are_scores, level),
            p_holm=p_holm,
            visible=visible_area(self.n, level),
        )

    def to_json(self) -> dict[str, Any]:
        """The finding as a row of the report's table."""
        return {
            "name": self.name,
            "label": self.label,
            "area": self.area,
            "interval_95": list(self.interval),
            "interval_corrected": list(self.corrected),
            "p": self.p,
            "p_holm": self.p_holm,
            "rows_of_each_class": self.n,
            "area_that_would_have_been_seen": self.visible,
            "counts": self.counts,
            "verdict": self.verdict,
            **(self.more or {}),
        }


def privacy_part(
    rows: ReportRows,
    model_scores: Mapping[str, Numbers],
    n_rows: int,
    *,
    mismatch: str | None,
    seed: int,
    report: Report = report_to_nobody,
) -> Part:
    """Judges what attacks find.

    Args:
        rows: Of the report; members and unseen ones in an order that has no meaning.
        model_scores: The model's own likelihood of the first `n_rows` members and unseen rows, and
            its difference to a reference model's; empty without a model. Shape: (2 n_rows,) each.
        n_rows: Members, and unseen rows, that are attacked.
        mismatch: Why unseen rows are no fair comparison, if they are none.
        seed: Of the attacks.
    """
    if rows.unseen is None:
        return not_measured(
            "an attack is judged by unseen rows, and there are none",
            "Name a holdout, or train with report_share=0.1.",
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


def _score_findings(
    targets: attacks.Targets,
    model_scores: Mapping[str, Numbers],
    are_from_model: bool,
    report: Report,
) -> list[Finding]:
    """Attacks with a score, on all rows and on those that are most isolated."""
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
    """Attacks that succeed or not."""
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
    "likelihood": "The model finds rows of training likelier",
    "likelihood_ratio": "The same, less the score of a model without these rows",
    "distance": "Drawn rows are nearer to rows of training",
    "distance_ratio": "The same, beside the distance to other real rows",
    "density_ratio": "Drawn rows are denser around rows of training",
    "copies": "Drawn rows are exact copies of rows of training",
    "copies_isolated": "Drawn rows are exact copies of isolated rows of training",
    "attribute_inference": "Drawn rows help to guess a missing cell of rows of training",
    "linkability": "Drawn rows link two halves of a row of training",
    "singling_out": "Drawn rows describe one row of training alone",
}


def _of_scores(name: str, label: str, members: Numbers, unseen: Numbers, counts: bool) -> Finding:
    return Finding(
        name,
        label,
        area(members, unseen),
        area_interval(members, unseen, _LEVEL),
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
        _interval((members, unseen), False, _LEVEL),
        difference_p_value(members, unseen),
        min(len(members), len(unseen)),
        (members, unseen),
        are_scores=False,
        more={"rate_members": float(members.mean()), "rate_unseen": float(unseen.mean())},
    )


def _interval(
    samples: tuple[Numbers, Numbers], are_scores: bool, level: float
) -> tuple[float, float]:
    """Of the area, or of the area that stands for two rates."""
    if are_scores:
        return area_interval(*samples, level)
    low, high = difference_interval(*samples, level)
    return 0.5 + low / 2, 0.5 + high / 2


def _corrected(findings: list[Finding]) -> list[Finding]:
    """Corrected for the number of those that have a part in the verdict; others stand alone."""
    judged = [f for f in findings if f.counts]
    p_values = iter(holm([f.p for f in judged]))
    return [
        f.corrected_for(len(judged), next(p_values)) if f.counts else f.corrected_for(1, f.p)
        for f in findings
    ]


def _rates_at_few_false(members: Numbers, unseen: Numbers) -> dict[str, Any]:
    """True positives at 1 % false ones, and the epsilon that they show; from 1,000 rows on.

    The threshold is that of one half of the unseen rows; the other half, and the members, say how
    often it is passed.
    """
    if min(len(members), len(unseen)) < _ROWS_FOR_RATE:
        return {"at_one_percent": None}
    half = len(unseen) // 2
    threshold = np.quantile(unseen[:half], 1.0 - _FALSE_SHARE, method="higher")
    true, false = int((members > threshold).sum()), int((unseen[half:] > threshold).sum())
    n, n_false = len(members), len(unseen) - half
    true_interval = rate_interval(true, n, _LEVEL)
    false_interval = rate_interval(false, n_false, _LEVEL)
    most = rate_interval(n, n, _LEVEL)[0], rate_interval(0, n_false, _LEVEL)[1]
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
    """log(true / false), at least 0: what any (epsilon, 0)-private training allows."""
    return max(0.0, math.log(true / false)) if true > 0 and false > 0 else 0.0


def _judged(
    findings: list[Finding], rows: ReportRows, copies: ExactCopies, mismatch: str | None, seed: int
) -> Part:
    judged = [f for f in findings if f.counts]
    verdict = next((v for v in (RED, AMBER) if any(f.verdict == v for f in judged)), GREEN)
    seen_from = max(f.visible for f in judged if f.name in ("distance", "likelihood"))
    found = [f for f in judged if f.verdict in (RED, AMBER)]
    figures = tuple(
        Figure(f.name, f.label, f.area, 0.5, f.corrected, unit="share", judged=f.shown_verdict)
        for f in findings
    )
    tables = {
        "attacks": [f.to_json() for f in findings],
        "exact_copies": copies.to_json(),
        "only_scores_tell": bool(found) and all(f.name.startswith("likelihood") for f in found),
        "descriptive": _descriptive(rows, seed),
        "settings": {
            "level": _LEVEL,
            "n_attacks_corrected_for": len(judged),
            "material_from": MATERIAL,
            "isolated_share": attacks.ISOLATED_SHARE,
        },
    }
    if copies.are_real_rows:
        verdict, sentence, advice = RED, _REAL_ROWS, _NO_REAL_ROWS
    elif verdict == GREEN and seen_from > MOST_VISIBLE:
        verdict, (sentence, advice) = NOT_MEASURED, _too_few(seen_from, findings[0].n)
    else:
        sentence, advice = _in_words(verdict, found, seen_from, len(rows.members))
    sentence += f" {copies.sentence}"
    if mismatch is not None:
        verdict = NOT_MEASURED
        sentence = f"Not measured: {mismatch}. What the attacks found is no evidence."
        advice = UNLIKE
    elif not rows.is_training_table:
        sentence += (
            " The real table is not, row by row, the one that a model was trained on: rows that"
            " training did not use count as members here, which hides leaks rather than shows them."
        )
    return Part(verdict, sentence, advice, figures, tables)


_REAL_ROWS = (
    "The rows that were judged are real ones, or many of them are: word for word they are rows of"
    " the real table, also of those that were kept for this comparison. So the attacks, which tell"
    " the one from the other, find nothing."
)
_NO_REAL_ROWS = (
    "Do not hand this table on: who has it has the real rows. Judge rows that a model drew."
)


def _too_few(seen_from: float, n_rows: int) -> tuple[str, str]:
    return (
        f"Too few rows to say: with {n_rows} unseen rows only a very large leak would have been"
        f" seen, one that names the right row of two in {percent(seen_from)} of all pairs"
        " (guessing: 50 %). None was found, and that is no all-clear.",
        MORE_UNSEEN,
    )


def _in_words(
    verdict: str, found: list[Finding], seen_from: float, n_members: int
) -> tuple[str, str]:
    if verdict == GREEN:
        return (
            "None found. The attacks would have seen a leak that tells a row of training from"
            f" another in {percent(seen_from)} of all pairs of rows, or more; guessing is right in"
            " 50 %.",
            NEVER_SAFE,
        )
    said = "; ".join(dict.fromkeys(_SAID[f.name.removesuffix("_isolated")] for f in found))
    best = max(found, key=lambda f: f.area)
    among = " among the rows that are least like others" if best.name.endswith("isolated") else ""
    how_much = (
        f" At its clearest it tells a row of training from another in {percent(best.area)} of the"
        f" pairs{among}; guessing is right in 50 %."
    )
    are_scores_alone = all(f.name.startswith("likelihood") for f in found)
    where = "In the model and its scores" if are_scores_alone else "In the drawn rows"
    none_of_rows = " In the drawn rows alone the attacks found none." if are_scores_alone else ""
    if verdict == RED:
        keep = _KEEP_SCORES if are_scores_alone else "Do not hand on these rows, nor the model."
        return (
            f"{where} a leak that matters was found: {said}.{how_much}{none_of_rows}",
            f"{keep} {_what_helps(n_members)} Then make the report again.",
        )
    keep = "Keep the model and its scores to yourself. " if are_scores_alone else ""
    return (
        f"{where} a small leak was found: {said}.{how_much}{none_of_rows}",
        f"{keep}Decide with whoever answers for the data whether it is small enough."
        f" {_what_helps(n_members)}",
    )


_KEEP_SCORES = (
    "Do not hand on the model, and let no others score rows with it: its scores are what tells."
    " What this draw of rows did not show another may: have the very table that you hand on judged"
    " by itself (gcvae report with --synthetic), where scores have no part in the verdict."
)
_FEW_MEMBERS = 3_000
"""Rows of training under which no setting that was tried made the attack by scores weaker."""


def _what_helps(n_members: int) -> str:
    """What makes a leak smaller, as far as it was measured."""
    if n_members < _FEW_MEMBERS:
        return (
            f"A model remembers of so few rows ({n_members:,}) what sets them apart, and settings"
            " change little of that: more rows make the leak smaller."
        )
    return (
        "More rows make the leak smaller; other settings change little of it. The setting"
        " differential_privacy limits what any attack can find; it costs likeness, least on large"
        " tables."
    )


_SAID = {
    "likelihood": "the model gives rows of training higher scores than other rows",
    "likelihood_ratio": "the model gives rows of training higher scores than other rows",
    "distance": "drawn rows lie nearer to rows of training than to others",
    "distance_ratio": "drawn rows lie nearer to rows of training than to others",
    "density_ratio": "drawn rows crowd around rows of training",
    "copies": "some drawn rows are exact copies of rows of training",
    "attribute_inference": "drawn rows help to guess a cell of a row of training",
    "linkability": "drawn rows help to join two halves of a row of training",
    "singling_out": "drawn rows describe single rows of training",
}
"""What a finding means, in plain words."""


def _descriptive(rows: ReportRows, seed: int) -> dict[str, Any]:
    """The share of drawn rows nearer to members than to unseen rows: it misses leaks."""
    assert rows.unseen is not None
    n = min(len(rows.members), len(rows.unseen), MOST_ROWS)
    found = dcr_share(
        rows.members.head(n), rows.unseen.head(n), rows.drawn, rows.schema, n_rows=1_000, seed=seed
    )
    return {
        "share_nearer_to_members": found.value,
        "standard_error": found.standard_error,
        "note": "descriptive only: distances are known to miss leaks",
    }
