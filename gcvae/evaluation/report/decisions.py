"""Recommendations on sharing the synthetic rows and the model, shown at the top of a report.

There is one for the rows and one for the model: if only the model's scores reveal training rows,
the rows may be shared and the model may not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gcvae.evaluation.report.parts import AMBER, GREEN, NOT_MEASURED, RED, Part, worst

_ROWS, _MODEL = "rows", "model"
_OWNER = "the person responsible for the data"


@dataclass(frozen=True)
class Decision:
    """Recommendation on sharing the synthetic rows or the model.

    Attributes:
        of: What may be shared: `rows` or `model`.
        verdict: `green`, `amber`, `red` or `not_measured`.
        sentence: The recommendation with its reason.
    """

    of: str
    verdict: str
    sentence: str

    def to_json(self) -> dict[str, str]:
        """Returns the decision as a JSON object."""
        return {"of": self.of, "verdict": self.verdict, "sentence": self.sentence}


def decisions(parts: Mapping[str, Part], *, are_from_model: bool) -> tuple[Decision, ...]:
    """Returns the recommendations, for the rows and, if applicable, for the model.

    Args:
        parts: Parts of the report, by name.
        are_from_model: Whether the model generated the rows; only then it is judged too.
    """
    return (_rows_decision(parts), *([_model_decision(parts["privacy"])] if are_from_model else []))


def _rows_decision(parts: Mapping[str, Part]) -> Decision:
    """Returns the decision on the rows: the worst verdict of fidelity, utility and privacy leaks.

    If leaks or fidelity could not be measured, the decision is at best `not_measured`.
    """
    privacy = parts["privacy"]
    copies = privacy.tables.get("exact_copies", {})
    if copies.get("are_real_rows", False):
        return Decision(_ROWS, RED, _real_rows(copies))
    leak = _leak(privacy, _ROWS)
    others = {name: parts[name].verdict for name in ("fidelity", "utility")}
    if leak == RED:
        sentence = "do not share them. They reveal real rows that the model was trained on"
    elif RED in others.values():
        sentence = "do not share them as they are. " + (
            "They are not similar to real rows"
            if others["fidelity"] == RED
            else "Models trained on them predict much worse than models trained on real rows"
        )
    elif leak == NOT_MEASURED:
        sentence = "do not share them yet. Whether they reveal real rows could not be measured"
    elif leak == AMBER:
        sentence = f"share them only if {_OWNER} approves. They reveal something of real rows"
    elif others["fidelity"] == NOT_MEASURED:
        sentence = (
            "do not share them yet. There are too few rows to measure whether they are similar to"
            " real rows"
        )
    elif AMBER in others.values():
        sentence = (
            "review the findings below before you share them. No attack found a leak of real rows"
        )
    else:
        sentence = f"no finding speaks against sharing them. The decision is with {_OWNER}"
    found = leak, *others.values()
    must_wait = leak == NOT_MEASURED or (leak == GREEN and others["fidelity"] == NOT_MEASURED)
    verdict = next((v for v in (RED, *_WAIT[must_wait], AMBER) if v in found), GREEN)
    return Decision(_ROWS, verdict, f"Synthetic rows: {sentence}.")


_WAIT = {True: (NOT_MEASURED,), False: ()}


def _real_rows(copies: Mapping[str, int]) -> str:
    return (
        "Synthetic rows: do not share them. Many of them are real rows:"
        f" {copies['drawn_rows_that_are_real']:,} of the {copies['drawn_rows']:,} rows examined are"
        " exact copies of rows of the real table. Check that the right file was given."
    )


def _model_decision(privacy: Part) -> Decision:
    """Returns the decision on the model, from all attacks, since its owner can score rows too."""
    verdict = _leak(privacy, _MODEL)
    sentence = {
        RED: "do not share it or its scores. They reveal which rows it was trained on",
        AMBER: f"share it and its scores only if {_OWNER} approves. They reveal something of its"
        " training rows",
        GREEN: "no attack found a leak in it or in its scores. The decision on sharing it is with"
        f" {_OWNER}",
        NOT_MEASURED: "do not share it. Whether it reveals real rows could not be measured",
    }
    return Decision(_MODEL, verdict, f"Model: {sentence[verdict]}.")


def _leak(privacy: Part, of: str) -> str:
    """Returns the verdict on leaks from `rows` or `model`; that of the privacy part if no attack
    was run."""
    return str(privacy.tables.get("leaks", {}).get(of, privacy.verdict))


def headline(parts: Mapping[str, Part], *, are_from_model: bool) -> str:
    """Returns one line with the recommendations and the number of parts that were not measured.

    Args:
        parts: Parts of the report, by name.
        are_from_model: Whether the model generated the rows; only then it is judged too.
    """
    asked = [part.verdict for name, part in parts.items() if are_from_model or name != "likelihood"]
    if worst(asked) == NOT_MEASURED:
        return "Nothing could be measured."
    sentence = " ".join(d.sentence for d in decisions(parts, are_from_model=are_from_model))
    n_missing = asked.count(NOT_MEASURED)
    return sentence + (
        f" {n_missing} of the {len(asked)} parts could not be measured." if n_missing else ""
    )
