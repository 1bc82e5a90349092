"""Valid values of the settings: choices of texts, minima and maxima of numbers."""

from __future__ import annotations

import math

from gcvae.errors import Problem

CHOICES: dict[str, tuple[object, ...]] = {
    "numbers": ("standardised", "unit", "quantile"),
    "levels": ("listed", "learned"),
    "rules": ("model", "none"),
    "prior": ("normal", "mixture", "autoregressive"),
    "decoder": ("copula", "principal-direction"),
    "activation": ("tanh", "relu", "silu"),
    "memory": ("normal", "low"),
    "objective": ("jitter", "exact"),
    "locality_norm": (1, 2),
}
MINIMA: dict[str, float] = {
    "n_components": 1,
    "report_share": 0,
    "rare_level_rows": 0,
    "d_sum": 1,
    "d_column": 1,
    "kl_warm_up": 0,
    "column_dropout": 0,
    "hidden_dropout": 0,
    "weight_decay": 0,
    "imagined_rows": 0,
    "averaging": 0,
    "gradient_memory": 0,
    "annealing": 0,
    "gradient_limit": 0,
    "rank": 0,
    "d_latent": 1,
    "d_hidden": 1,
    "n_hidden_layers": 1,
    "locality_weight": 0,
    "rank_weight": 0,
    "batch_size": 1,
    "max_steps": 1,
    "max_passes": 0.1,
    "gap_weight": 0,
    "patience_steps": 1,
    "patience_from": 0,
    "min_improvement": 0,
    "evaluate_every_steps": 1,
}

# Larger than any table needs, small enough for a machine's memory; rates are under 1.
MAXIMA: dict[str, float] = {
    "kl_warm_up": 1,
    "patience_from": 100_000_000,
    "column_dropout": 0.99,
    "hidden_dropout": 0.99,
    "averaging": 0.99999,
    "report_share": 0.5,
    "rare_level_rows": 1_000_000,
    "gradient_memory": 0.99999,
    "n_components": 128,
    "d_sum": 4096,
    "d_column": 4096,
    "imagined_rows": 10_000,
    "rank": 64,
    "d_latent": 512,
    "d_hidden": 8192,
    "n_hidden_layers": 32,
    "batch_size": 1_000_000,
    "max_steps": 100_000_000,
    "min_improvement": 100,
    "gap_weight": 100,
    "patience_steps": 100_000_000,
    "evaluate_every_steps": 100_000_000,
}


def range_problem(key: str, value: object) -> Problem | None:
    """Checks that the value of a setting is within its range, if it is a number.

    Returns:
        The problem, for an error; None if the number is valid or the value is not a number.
    """
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    pointer = f"/{key}"
    if not math.isfinite(value):
        return Problem(f"setting {key} is {value}", pointer=pointer, expected="a finite number")
    if key in MINIMA and value < MINIMA[key]:
        least = f"at least {MINIMA[key]}"
        return Problem(f"setting {key} is {value}", pointer=pointer, expected=least)
    if key in MAXIMA and value > MAXIMA[key]:
        most = f"at most {MAXIMA[key]}"
        return Problem(f"setting {key} is {value}", pointer=pointer, expected=most)
    if key == "learning_rate" and not 0 < value <= 1:
        return Problem(f"setting {key} is {value}", pointer=pointer, expected="between 0 and 1")
    if key == "held_out_share" and not 0 < value <= 0.5:
        expected = "above 0, at most 0.5"
        return Problem(f"setting {key} is {value}", pointer=pointer, expected=expected)
    return None
