"""Joint verdict on all attacks, for the synthetic rows and for the model, and its sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gcvae.evaluation.report.findings import Finding
from gcvae.evaluation.report.parts import MORE_UNSEEN, MOST_VISIBLE, Verdict, percent, worst

NEVER_SAFE = (
    "That no leak was found is not a proof of safety. Before you share the data, read what this"
    " report does not cover, above all whether one row is one person."
)
_FEW_MEMBERS = 3_000
"""With fewer training rows, no tested setting weakened the attacks with the model's scores."""


@dataclass(frozen=True)
class Leaks:
    """Joint result of the membership attacks that contribute to the privacy verdict of a report.

    Attributes:
        findings: Results of the attacks.
        n_members: Number of training rows; with more of them, leaks are smaller.
    """

    findings: Sequence[Finding]
    n_members: int

    @property
    def detectable_auc(self) -> float:
        """AUC from which the main attacks on all rows would detect a leak.

        The main attacks use the distance to synthetic rows and, if the model's scores can be used,
        the likelihood. Each has a smallest AUC that it can detect; the larger one is returned.
        """
        return max(f.detectable_auc for f in self.findings if f.name in ("distance", "likelihood"))

    @property
    def of_model(self) -> Verdict:
        """Verdict on sharing the model, from all attacks, because it can also generate rows."""
        return self._verdict(self.findings)

    @property
    def of_rows(self) -> Verdict:
        """Verdict on sharing synthetic rows, from attacks that do not use the model's scores."""
        return self._verdict([f for f in self.findings if not f.is_of_model])

    def _verdict(self, findings: Sequence[Finding]) -> Verdict:
        verdict = worst(["green", *(f.verdict for f in findings)])
        is_blind = verdict == "green" and self.detectable_auc > MOST_VISIBLE
        return "not_measured" if is_blind else verdict

    def in_words(self) -> tuple[str, str]:
        """Returns (findings, advice) as sentences."""
        n_rows, detectable = self.findings[0].n, percent(self.detectable_auc)
        if self.of_model == "not_measured":
            return (
                f"Too few rows to judge: with {n_rows} unseen rows only a very large leak would"
                " have been detected, one that identifies the training row in"
                f" {detectable} of all pairs of a training row and an unseen row"
                " (guessing: 50 %). None was found, which is no evidence of safety.",
                MORE_UNSEEN,
            )
        if self.of_model == "green":
            return (
                "No leak found. The attacks would have detected a leak that identifies the training"
                f" row in {detectable} or more of all pairs of a training row and an"
                " unseen row (guessing: 50 %).",
                NEVER_SAFE,
            )
        found = [f for f in self.findings if f.verdict != "green"]
        scores = [f for f in found if f.is_of_model]
        rows = [f for f in found if not f.is_of_model]
        said = []
        if scores:
            said.append(
                "The model gives training rows higher scores than other rows. By its scores an"
                f" attacker identifies the training row in {_right_in(scores)}."
            )
        if rows:
            how = "; ".join(
                dict.fromkeys(_SENTENCES[f.name.removesuffix("_isolated")] for f in rows)
            )
            said.append(
                f"The synthetic rows alone also reveal training rows: {how}. By them an attacker"
                f" identifies the training row in {_right_in(rows)}."
                if scores
                else f"The synthetic rows reveal training rows: {how}. An attacker identifies the"
                f" training row in {_right_in(rows)}."
            )
        elif self.of_rows == "not_measured":
            said.append(
                f"The synthetic rows alone could not be judged: with {n_rows} unseen rows a leak"
                f" below {detectable} of the pairs would most likely not have been detected."
            )
        else:
            said.append(
                f"No attack on the synthetic rows alone found a leak; a leak in {detectable} or"
                " more of the pairs would have been detected."
            )
        return " ".join(said), self._advice()

    def _advice(self) -> str:
        model, rows = self.of_model, self.of_rows
        if rows == "red":
            keep = "Do not share these rows or the model."
        elif model == "red" and rows == "amber":
            keep = f"Do not share the model. {_ASK_ABOUT_ROWS}"
        elif rows == "amber":
            keep = _ASK_ABOUT_ROWS
        elif model == "red":
            keep = f"Do not share the model, and let no others score rows with it. {_ANOTHER}"
        else:
            keep = (
                "Share the model and its scores only if the person responsible for the data"
                f" approves. {_ANOTHER}"
            )
        return f"{keep} {self._what_helps()} Then make a new report."

    def _what_helps(self) -> str:
        """Returns advice on what reduces a leak, according to measurements."""
        if self.n_members < _FEW_MEMBERS:
            return (
                f"A model of so few training rows ({self.n_members:,}) learns what distinguishes"
                " them. More rows reduce the leak. So does the training setting memory: low, which"
                " makes the synthetic rows less similar to real rows."
            )
        return (
            "More training rows reduce the leak. So does the training setting memory: low, which"
            " makes the synthetic rows slightly less similar to real rows, and"
            " differential_privacy, which limits every possible attack and makes them less similar"
            " still, least so for large tables. Other settings have little effect."
        )


def _right_in(found: Sequence[Finding]) -> str:
    best = max(found, key=lambda f: f.area)
    row = "an isolated training row" if best.name.endswith("isolated") else "a training row"
    return f"{percent(best.area)} of all pairs of {row} and another row (guessing: 50 %)"


_ASK_ABOUT_ROWS = (
    "Ask the person responsible for the data whether rows that reveal this much may be shared, and"
    " the model, which generates them."
)
_ANOTHER = (
    "Other synthetic rows of this model may reveal more than these: judge the very table that you"
    " share, by a report on it. Scores then play no part in the verdict."
)
_SENTENCES = {
    "distance": "they are closer to training rows than to other rows",
    "distance_ratio": "they are closer to training rows than to other rows",
    "density_ratio": "they are concentrated around training rows",
    "copies": "some are exact copies of training rows",
    "attribute_inference": "they help to guess a cell of a training row",
    "linkability": "they help to link two halves of a training row",
    "singling_out": "they single out individual training rows",
}
"""Clause for each attack by its name, used if the attack found a leak."""
