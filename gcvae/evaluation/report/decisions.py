"""The verdicts on sharing the rows and the model, with which a report begins.

Rows and model are judged apart: where only the model's scores reveal real rows, the rows may be
shared and the model may not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gcvae.evaluation.report.parts import AMBER, GREEN, NOT_MEASURED, RED, Part, worst

_ROWS, _MODEL = "rows", "model"
_OWNER = "the person responsible for the data"


@dataclass(frozen=True)
class Decision:
    """The verdict on sharing the rows or the model.

    Attributes:
        of: `rows` or `model`.
    """

    of: str
    verdict: str
    sentence: str

    def to_json(self) -> dict[str, str]:
        """Returns the decision as a JSON document."""
        return {"of": self.of, "verdict": self.verdict, "sentence": self.sentence}


def decisions(parts: Mapping[str, Part], *, are_from_model: bool) -> tuple[Decision, ...]:
    """Of the rows, and of the model unless the rows are a table that was given."""
    return (_of_rows(parts), *([_of_model(parts["privacy"])] if are_from_model else []))


def _of_rows(parts: Mapping[str, Part]) -> Decision:
    """What is worst of likeness, use and leaks; what nobody could see comes before amber."""
    privacy = parts["privacy"]
    copies = privacy.tables.get("exact_copies", {})
    if copies.get("are_real_rows", False):
        return Decision(_ROWS, RED, _real_rows(copies))
    leak = _leak(privacy, _ROWS)
    others = {name: parts[name].verdict for name in ("fidelity", "utility")}
    if leak == RED:
        said = "do not share them. They reveal real rows that the model was trained on"
    elif RED in others.values():
        said = "do not share them as they are. " + (
            "They are not similar to real rows"
            if others["fidelity"] == RED
            else "Models trained on them predict much worse than models trained on real rows"
        )
    elif leak == NOT_MEASURED:
        said = "do not share them yet. Whether they reveal real rows could not be measured"
    elif leak == AMBER:
        said = f"share them only if {_OWNER} approves. They reveal something of real rows"
    elif others["fidelity"] == NOT_MEASURED:
        said = (
            "do not share them yet. There are too few rows to measure whether they are similar to"
            " real rows"
        )
    elif AMBER in others.values():
        said = (
            "review the findings below before you share them. No attack found a leak of real rows"
        )
    else:
        said = f"no finding speaks against sharing them. The decision is with {_OWNER}"
    found = leak, *others.values()
    must_wait = leak == NOT_MEASURED or (leak == GREEN and others["fidelity"] == NOT_MEASURED)
    verdict = next((v for v in (RED, *_WAIT[must_wait], AMBER) if v in found), GREEN)
    return Decision(_ROWS, verdict, f"Synthetic rows: {said}.")


_WAIT = {True: (NOT_MEASURED,), False: ()}


def _real_rows(copies: Mapping[str, int]) -> str:
    return (
        "Synthetic rows: do not share them. Many of them are real rows:"
        f" {copies['drawn_rows_that_are_real']:,} of the {copies['drawn_rows']:,} rows examined are"
        " exact copies of rows of the real table. Check that the right file was given."
    )


def _of_model(privacy: Part) -> Decision:
    """By all attacks: whoever has the model has its scores and can generate rows."""
    verdict = _leak(privacy, _MODEL)
    said = {
        RED: "do not share it or its scores. They reveal which rows it was trained on",
        AMBER: f"share it and its scores only if {_OWNER} approves. They reveal something of its"
        " training rows",
        GREEN: "no attack found a leak in it or in its scores. The decision on sharing it is with"
        f" {_OWNER}",
        NOT_MEASURED: "do not share it. Whether it reveals real rows could not be measured",
    }
    return Decision(_MODEL, verdict, f"Model: {said[verdict]}.")


def _leak(privacy: Part, of: str) -> str:
    """Returns the verdict on leaks of one thing; that of the part where it was not
    measured at all."""
    return str(privacy.tables.get("leaks", {}).get(of, privacy.verdict))


def headline(parts: Mapping[str, Part], *, are_from_model: bool) -> str:
    """Returns the decisions in a line, and how many parts could not be measured."""
    asked = [part.verdict for name, part in parts.items() if are_from_model or name != "likelihood"]
    if worst(asked) == NOT_MEASURED:
        return "Nothing could be measured."
    said = " ".join(d.sentence for d in decisions(parts, are_from_model=are_from_model))
    n_missing = asked.count(NOT_MEASURED)
    return said + (
        f" {n_missing} of the {len(asked)} parts could not be measured." if n_missing else ""
    )
