"""What to do with the rows, and with the model: the sentences that a report begins with.

Rows and model are two things: where only the model's scores tell of real rows, the rows may go out
and the model may not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gcvae.evaluation.report.parts import AMBER, GREEN, NOT_MEASURED, RED, Part, worst

_ROWS, _MODEL = "rows", "model"
_ASK = "ask whoever answers for the data"


@dataclass(frozen=True)
class Decision:
    """One thing, and what the report says of handing it on.

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
        said = "do not hand them on. They tell of real rows that the model learned from"
    elif RED in others.values():
        said = "do not hand them on as they are. " + (
            "They are not like real ones"
            if others["fidelity"] == RED
            else "One learns too little from them of what real ones teach"
        )
    elif leak == NOT_MEASURED:
        said = "wait. Nobody could tell whether they give real rows away"
    elif leak == AMBER:
        said = f"{_ASK} before you hand them on. They tell something of real rows"
    elif others["fidelity"] == NOT_MEASURED:
        said = "wait. There are not enough rows to say whether they are like real ones"
    elif AMBER in others.values():
        said = (
            "look at what is said below before you hand them on. No leak of real rows was found in"
            " them"
        )
    else:
        said = f"nothing that was looked at stands against handing them on. Still, {_ASK}"
    found = leak, *others.values()
    must_wait = leak == NOT_MEASURED or (leak == GREEN and others["fidelity"] == NOT_MEASURED)
    verdict = next((v for v in (RED, *_WAIT[must_wait], AMBER) if v in found), GREEN)
    return Decision(_ROWS, verdict, f"The rows: {said}.")


_WAIT = {True: (NOT_MEASURED,), False: ()}


def _real_rows(copies: Mapping[str, int]) -> str:
    return (
        "The rows: stop. They are real rows, or many of them are:"
        f" {copies['drawn_rows_that_are_real']:,} of the {copies['drawn_rows']:,} that were looked"
        " at stand word for word in the real table. Was the wrong file named?"
    )


def _of_model(privacy: Part) -> Decision:
    """By all attacks: who has the model has its scores, and can draw rows."""
    verdict = _leak(privacy, _MODEL)
    said = {
        RED: "keep it to yourself, and the scores that it gives. They tell which rows it learned"
        " from",
        AMBER: f"keep it to yourself, and the scores that it gives, or {_ASK}. They tell"
        " something of the rows that it learned from",
        GREEN: f"no leak was found in it or in the scores that it gives. Still, {_ASK}",
        NOT_MEASURED: "keep it to yourself. Nobody could tell whether it gives real rows away",
    }
    return Decision(_MODEL, verdict, f"The model: {said[verdict]}.")


def _leak(privacy: Part, of: str) -> str:
    """Returns the verdict on leaks of one thing; that of the part where it was not
    measured at all."""
    return str(privacy.tables.get("leaks", {}).get(of, privacy.verdict))


def headline(parts: Mapping[str, Part], *, are_from_model: bool) -> str:
    """Returns the decisions in a line, and how many questions have no answer."""
    asked = [part.verdict for name, part in parts.items() if are_from_model or name != "likelihood"]
    if worst(asked) == NOT_MEASURED:
        return "Nothing could be measured."
    said = " ".join(d.sentence for d in decisions(parts, are_from_model=are_from_model))
    n_missing = asked.count(NOT_MEASURED)
    return said + (
        f" {n_missing} of the {len(asked)} questions could not be answered." if n_missing else ""
    )
