"""What a campaign sent, what came back, and what should not have."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

_SHOWN = 400


@dataclass
class Findings:
    """Counts of a campaign, and each kind of failure once.

    Attributes:
        outcomes: how often each came back, by the subject.
        failures: what went wrong, with the first input that showed it.
    """

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    failures: dict[str, dict[str, Any]] = field(default_factory=dict)

    def count(self, subject: str, outcome: str) -> None:
        """Note what came back."""
        self.outcomes.setdefault(subject, Counter())[outcome] += 1

    def fail(self, what: str, **shown: object) -> None:
        """Note a failure: of each kind the first input, and how many there were."""
        texts = {name: str(value)[:_SHOWN] for name, value in shown.items()}
        self.failures.setdefault(what, {"n": 0, **texts})["n"] += 1

    @property
    def n_inputs(self) -> int:
        """How much was sent."""
        return sum(counts.total() for counts in self.outcomes.values())

    def report(self, **more: object) -> str:
        """A JSON document of all of it."""
        by_outcome: Counter[str] = sum(self.outcomes.values(), Counter())
        document = {
            **more,
            "inputs": self.n_inputs,
            "outcomes": dict(sorted(by_outcome.items())),
            "by_subject": {name: dict(c) for name, c in sorted(self.outcomes.items())},
            "failures": self.failures,
        }
        return json.dumps(document, indent=1, ensure_ascii=False)
