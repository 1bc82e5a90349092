"""Joint verdict on all attacks, for the rows and for the model, and its sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gcvae.evaluation.report.findings import Finding
from gcvae.evaluation.report.parts import (
    AMBER,
    GREEN,
    MORE_UNSEEN,
    MOST_VISIBLE,
    NOT_MEASURED,
    RED,
    percent,
)

NEVER_SAFE = (
    "None found is no proof that the rows are safe. Before you hand them on, see what this report"
    " does not cover: above all, whether one row is one person."
)
_FEW_MEMBERS = 3_000
"""Number of training rows below which no tested setting weakened the attack by scores."""


@dataclass(frozen=True)
class Leaks:
    """Findings of the attacks that count towards the verdict.

    Attributes:
        n_members: Number of training rows; with more rows leaks are smaller.
    """

    findings: Sequence[Finding]
    n_members: int

    @property
    def seen_from(self) -> float:
        """Smallest AUC that an attack on all rows would have detected."""
        return max(f.visible for f in self.findings if f.name in ("distance", "likelihood"))

    @property
    def of_model(self) -> str:
        """Verdict on the model, by all attacks: its owner can also generate rows."""
        return self._verdict(self.findings)

    @property
    def of_rows(self) -> str:
        """Verdict on synthetic rows alone."""
        return self._verdict([f for f in self.findings if not f.is_of_model])

    def _verdict(self, findings: Sequence[Finding]) -> str:
        verdict = next((v for v in (RED, AMBER) if any(f.verdict == v for f in findings)), GREEN)
        is_blind = verdict == GREEN and self.seen_from > MOST_VISIBLE
        return NOT_MEASURED if is_blind else verdict

    def in_words(self) -> tuple[str, str]:
        """Returns (findings, advice) as sentences."""
        n_rows = self.findings[0].n
        if self.of_model == NOT_MEASURED:
            return (
                f"Too few rows to say: with {n_rows} unseen rows only a very large leak would have"
                f" been noticed, one that names the right row of two in {percent(self.seen_from)}"
                " of all pairs (guessing: 50 %). None was found, and that is no all-clear.",
                MORE_UNSEEN,
            )
        if self.of_model == GREEN:
            return (
                "None found. The attacks would have noticed a leak that tells a row of training"
                f" from another in {percent(self.seen_from)} of all pairs of rows, or more;"
                " guessing is right in 50 %.",
                NEVER_SAFE,
            )
        return f"{self._found_by_scores()}{self._found_by_rows(n_rows)}", self._advice()

    def _found_by_scores(self) -> str:
        found = [f for f in self._found if f.is_of_model]
        if not found:
            return ""
        return (
            "The model gives rows of training higher scores than other rows: who has it and is"
            f" shown one of each names the right one in {_right_in(found)}. "
        )

    def _found_by_rows(self, n_rows: int) -> str:
        found = [f for f in self._found if not f.is_of_model]
        if found:
            said = "; ".join(
                dict.fromkeys(_SENTENCES[f.name.removesuffix("_isolated")] for f in found)
            )
            return (
                f"The drawn rows alone tell of rows of training, too: {said}. By them one names the"
                f" right one in {_right_in(found)}."
                if len(found) < len(self._found)
                else f"The drawn rows tell of rows of training: {said}. Who is shown a row of"
                f" training and another names the right one in {_right_in(found)}."
            )
        if self.of_rows == NOT_MEASURED:
            return (
                f"Of the drawn rows alone nothing can be said: with {n_rows} unseen rows a leak"
                f" below {percent(self.seen_from)} of the pairs would most likely have gone"
                " unnoticed."
            )
        return (
            "In the drawn rows alone no attack found anything; a leak in"
            f" {percent(self.seen_from)} of the pairs or more would have been noticed."
        )

    def _advice(self) -> str:
        model, rows = self.of_model, self.of_rows
        if rows == RED:
            keep = "Do not hand on these rows, nor the model."
        elif model == RED and rows == AMBER:
            keep = f"Do not hand on the model. {_ASK_ABOUT_ROWS}"
        elif rows == AMBER:
            keep = _ASK_ABOUT_ROWS
        elif model == RED:
            keep = f"Do not hand on the model, and let no others score rows with it. {_ANOTHER}"
        else:
            keep = (
                "Keep the model and its scores to yourself, or ask whoever answers for the data."
                f" {_ANOTHER}"
            )
        return f"{keep} {self._what_helps()} Then make the report again."

    def _what_helps(self) -> str:
        """Returns the advice on settings that reduce a leak, as measured."""
        if self.n_members < _FEW_MEMBERS:
            return (
                f"A model remembers of so few rows ({self.n_members:,}) what sets them apart:"
                " more rows make the leak smaller. So does memory: low in training, which costs"
                " likeness."
            )
        return (
            "More rows of training make the leak smaller. So does the setting memory: low, which"
            " costs some likeness, and differential_privacy, which limits what any attack can find"
            " and costs more, least on large tables. Other settings change little."
        )

    @property
    def _found(self) -> list[Finding]:
        return [f for f in self.findings if f.verdict in (RED, AMBER)]


def _right_in(found: Sequence[Finding]) -> str:
    best = max(found, key=lambda f: f.area)
    among = " among the rows that are least like others" if best.name.endswith("isolated") else ""
    return f"{percent(best.area)} of such pairs{among} (guessing: 50 %)"


_ASK_ABOUT_ROWS = (
    "Ask whoever answers for the data whether rows that tell so much may be handed on, and the"
    " model, which draws them."
)
_ANOTHER = (
    "What this draw of rows did not show another may: have the very table that you hand on judged"
    " by itself (gcvae report with --synthetic), where scores have no part in the verdict."
)
_SENTENCES = {
    "distance": "they lie nearer to these than to others",
    "distance_ratio": "they lie nearer to these than to others",
    "density_ratio": "they crowd around these",
    "copies": "some are exact copies of these",
    "attribute_inference": "they help to guess a cell of these",
    "linkability": "they help to join two halves of these",
    "singling_out": "they describe single ones of these",
}
"""Sentences for findings."""
