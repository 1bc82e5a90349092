"""Recommendations on sharing the synthetic rows and the model, shown at the top of a report.

There is one for the rows and one for the model: if only the model's scores reveal training rows,
the rows may be shared and the model may not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gcvae.evaluation.report.parts import Part, Verdict, worst

_OWNER = "the person responsible for the data"


@dataclass(frozen=True)
class Decision:
    """Recommendation on sharing the synthetic rows or the model.

    Attributes:
        of: What the recommendation is about: `rows` or `model`.
        verdict: `green`, `amber`, `red` or `not_measured`.
        sentence: The recommendation with its reason.
    """

    of: str
    verdict: Verdict
    sentence: str


def decisions(parts: Mapping[str, Part], *, are_from_model: bool) -> tuple[Decision, ...]:
    """Returns recommendations on sharing the rows and, if the model generated them, the model.

    Args:
        parts: Parts of the report, by name.
        are_from_model: Whether the model generated the rows.
    """
    verdict, sentence = _on_rows(parts)
    of_rows = Decision("rows", verdict, f"Synthetic rows: {sentence}.")
    if not are_from_model:
        return (of_rows,)
    leak = _leak(parts["privacy"], "model")
    return of_rows, Decision("model", leak, f"Model: {_ON_MODEL[leak]}.")


def _on_rows(parts: Mapping[str, Part]) -> tuple[Verdict, str]:
    """Returns (verdict, sentence) on the rows: the worst of fidelity, utility and privacy leaks.

    If leaks or fidelity could not be measured, the verdict is at best `not_measured`.
    """
    privacy, fidelity, utility = (parts[name] for name in ("privacy", "fidelity", "utility"))
    copies = privacy.tables.get("exact_copies", {})
    if copies.get("are_real_rows", False):
        return "red", (
            "do not share them. Many of them are real rows:"
            f" {copies['drawn_rows_that_are_real']:,} of the {copies['drawn_rows']:,} rows examined"
            " are exact copies of rows of the real table. Check that the right file was given"
        )
    leak = _leak(privacy, "rows")
    if leak == "red":
        return "red", "do not share them. They reveal real rows that the model was trained on"
    if fidelity.verdict == "red":
        return "red", "do not share them as they are. They are not similar to real rows"
    if utility.verdict == "red":
        return "red", (
            "do not share them as they are. Models trained on them predict much worse than models"
            " trained on real rows"
        )
    if leak == "not_measured":
        return leak, ("do not share them yet. Whether they reveal real rows could not be measured")
    if leak == "amber":
        return leak, f"share them only if {_OWNER} approves. They reveal something of real rows"
    if fidelity.verdict == "not_measured":
        return "not_measured", (
            "do not share them yet. There are too few rows to measure whether they are similar to"
            " real rows"
        )
    if "amber" in (fidelity.verdict, utility.verdict):
        return "amber", (
            "review the findings below before you share them. No attack found a leak of real rows"
        )
    return "green", f"no finding speaks against sharing them. The decision is with {_OWNER}"


_ON_MODEL = {
    "red": "do not share it or its scores. They reveal which rows it was trained on",
    "amber": f"share it and its scores only if {_OWNER} approves. They reveal something of its"
    " training rows",
    "green": "no attack found a leak in it or in its scores. The decision on sharing it is with"
    f" {_OWNER}",
    "not_measured": "do not share it. Whether it reveals real rows could not be measured",
}
"""Sentence on the model by the joint verdict of all attacks."""


def _leak(privacy: Part, of: str) -> Verdict:
    """Returns the verdict on leaks of training rows by the `rows` or the `model`; without attacks,
    the verdict of the privacy part, the same for both."""
    verdict: Verdict = privacy.tables.get("leaks", {}).get(of, privacy.verdict)
    return verdict


def headline(parts: Mapping[str, Part], *, are_from_model: bool) -> str:
    """Returns one line with the recommendations and the number of parts that were not measured.

    The arguments are those of `decisions`.
    """
    asked = [part.verdict for name, part in parts.items() if are_from_model or name != "likelihood"]
    if worst(asked) == "not_measured":
        return "Nothing could be measured."
    sentence = " ".join(d.sentence for d in decisions(parts, are_from_model=are_from_model))
    n_missing = asked.count("not_measured")
    return sentence + (
        f" {n_missing} of the {len(asked)} parts could not be measured." if n_missing else ""
    )
