"""How much an experiment may spend: the paper's whole way, a short one, and a look."""

from __future__ import annotations

from dataclasses import dataclass

HOW_MANY = ("splits", "dimensions", "preset_splits", "restarts")
"""Fields that say how many fits there are, and not how each is made."""


@dataclass(frozen=True)
class Budget:
    """What each experiment may spend.

    Attributes:
        splits: Of the UCI tables.
        dimensions: Of z, of the UCI models, in the order in which they are run.
        uci_steps: Updates at most; the paper stops at 10,000.
        patience_steps: Updates without a better held-out bound that end a fit.
        batch_size, learning_rate: Of the UCI tables' updates.
        preset_splits: In how many of the splits the library's own presets run too.
        restarts: Of the half circle.
        circle_steps: Updates of each restart.
        drawn_rows: On which kernels stand; the paper's 10,000.
        score_draws: Of z for each row's likelihood.
    """

    name: str
    splits: int
    dimensions: tuple[int, ...]
    uci_steps: int
    patience_steps: int
    batch_size: int
    learning_rate: float
    preset_splits: int
    restarts: int
    circle_steps: int
    drawn_rows: int = 10_000
    score_draws: int = 1_000

    @property
    def is_look(self) -> bool:
        """Whether nothing is trained to its end."""
        return self.name == "look"


BUDGETS = {
    budget.name: budget
    for budget in (
        Budget("paper", 10, (2, 1, 5), 10_000, 2_000, 32, 0.001, 10, 50, 6_000),
        Budget("short", 10, (2, 1, 5), 1_500, 500, 32, 0.001, 10, 12, 2_500),
        Budget("look", 2, (2,), 60, 60, 32, 0.001, 1, 2, 60, 500, 20),
    )
}
