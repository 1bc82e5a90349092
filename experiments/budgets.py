"""Budgets of the experiments: that of the paper, a short one, and one for a quick look."""

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
"""Fields of `Budget` that determine how a model of a UCI table is fitted and scored."""


@dataclass(frozen=True)
class Budget:
    """How many fits, updates, images and samples the experiments may use.

    z is the latent vector, and an update is one step of the optimiser.

    Attributes:
        name: paper, short or look.
        splits: Number of random splits of each UCI table.
        dimensions: Dimensions of z for which models of the UCI tables are fitted, in this order.
        uci_steps: Maximum number of updates of a UCI fit; 10,000 in the paper.
        patience_steps: Number of updates without a better held-out bound after which a UCI fit
            stops.
        batch_size, learning_rate: Settings of the UCI fits.
        preset_splits: Number of splits on which the library's presets are fitted too.
        restarts: Number of restarts of each model of the half circle.
        wedge_restarts: The same for the half circle with wedges.
        learning_restarts: The same for each alternative learning schedule in
            `half_circle.LEARNING`.
        circle_steps: Number of updates of each restart before the learning rate decays.
        frey_steps, mnist_steps: Number of updates of a full image fit before the learning rate
            decays.
        mnist_images: Number of images of the MNIST training set; a sixth of them is for validation.
        image_parts: Fractions of a full fit's updates for which image models are fitted; 1 is a
            full fit.
        longer_faces: Multiples of a full fit for which the VAE-ROC of the faces is also fitted.
        longer_digits: The same for the two models of digits that differ only in rank
            regularisation.
        scored_images: Number of test images whose likelihood is estimated.
        image_draws: Number of samples of z for each image's likelihood.
        drawn_rows: Number of generated rows used as kernel centres; 10,000 in the paper.
        score_draws: Number of samples of z for each row's likelihood.
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
        """Whether this is the budget `look`, which stops training long before convergence."""
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
