"""How much an experiment may spend: the paper's whole way, a short one, and a look."""

from __future__ import annotations

from dataclasses import dataclass

OF_UCI_FITS = (
    "uci_steps",
    "patience_steps",
    "batch_size",
    "learning_rate",
    "drawn_rows",
    "score_draws",
)
"""Fields that say how a fit of a UCI table is made and measured."""


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
        wedge_restarts: Of the half circle with wedges.
        learning_restarts: Of each other way to learn the half circle.
        circle_steps: Updates of each restart, before the steps fall.
        frey_steps, mnist_steps: Updates of a whole fit, before the steps fall.
        mnist_images: Of the training set, a sixth of them to choose by.
        image_parts: Shares of those updates with which fits of images are made, 1 the last.
        longer_faces: Beyond them, of the faces' VAE-ROC alone.
        longer_digits: Beyond them, of the digits' two models that differ in the rank alone.
        scored_images: Test images of which the likelihood is bounded.
        image_draws: Of z for each image's likelihood.
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
    wedge_restarts: int
    learning_restarts: int
    circle_steps: int
    frey_steps: int
    mnist_steps: int
    mnist_images: int
    image_parts: tuple[float, ...]
    longer_faces: tuple[float, ...]
    longer_digits: tuple[float, ...]
    scored_images: int
    image_draws: int
    drawn_rows: int = 10_000
    score_draws: int = 1_000

    @property
    def is_look(self) -> bool:
        """Whether nothing is trained to its end."""
        return self.name == "look"


BUDGETS = {
    budget.name: budget
    for budget in (
        Budget(
            "paper",
            splits=10,
            dimensions=(2, 1, 5),
            uci_steps=10_000,
            patience_steps=2_000,
            batch_size=32,
            learning_rate=0.001,
            preset_splits=10,
            restarts=50,
            wedge_restarts=50,
            learning_restarts=12,
            circle_steps=4_000,
            frey_steps=20_000,
            mnist_steps=40_000,
            mnist_images=60_000,
            image_parts=(0.05, 0.2, 1.0),
            longer_faces=(),
            longer_digits=(),
            scored_images=1_000,
            image_draws=1_000,
        ),
        Budget(
            "short",
            splits=10,
            dimensions=(2, 1, 5),
            uci_steps=1_500,
            patience_steps=500,
            batch_size=32,
            learning_rate=0.001,
            preset_splits=10,
            restarts=50,
            wedge_restarts=10,
            learning_restarts=10,
            circle_steps=3_000,
            frey_steps=3_000,
            mnist_steps=800,
            mnist_images=30_000,
            image_parts=(0.25, 1.0),
            longer_faces=(3.0,),
            longer_digits=(4.0, 16.0),
            scored_images=196,
            image_draws=200,
        ),
        Budget(
            "look",
            splits=2,
            dimensions=(2,),
            uci_steps=60,
            patience_steps=60,
            batch_size=32,
            learning_rate=0.001,
            preset_splits=1,
            restarts=2,
            wedge_restarts=1,
            learning_restarts=1,
            circle_steps=60,
            frey_steps=40,
            mnist_steps=20,
            mnist_images=600,
            image_parts=(1.0,),
            longer_faces=(),
            longer_digits=(),
            scored_images=10,
            image_draws=10,
            drawn_rows=500,
            score_draws=20,
        ),
    )
}
