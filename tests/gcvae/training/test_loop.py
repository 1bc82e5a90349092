"""Training: it learns, stops, reports, and continues from a checkpoint to the same bits."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.errors import CancelledError, DivergedError, SettingError
from gcvae.model.decoders import GenerativeModel
from gcvae.numerics.generators import generator_for
from gcvae.training import loop as training
from gcvae.training.assembly import build_model
from gcvae.training.loop import TrainingResult, split, train
from gcvae.training.progress import Progress
from gcvae.training.settings import (
    SettledConfig,
    TrainingConfig,
    configure,
    preset_named,
    settle,
)
from tests.gcvae.models import levels, number
from tests.lengths import PRESETS_TRIED, first_of
from tests.wordings import refuses

COLUMNS = [number("x"), number("y"), levels(3, "group")]


def table(n: int = 300) -> EncodedTable:
    """y follows x, the group follows the sign of x."""
    generator = generator_for(7, "table")
    x = torch.randn(n, generator=generator, dtype=torch.float64)
    y = 0.9 * x + 0.3 * torch.randn(n, generator=generator, dtype=torch.float64)
    group = (x > 0).int() + (x > 1).int()
    codes = torch.stack([torch.zeros(n).int(), torch.zeros(n).int(), group], 1)
    values = torch.stack([x, y, torch.zeros(n).double()], 1)
    return EncodedTable(codes, values, torch.ones_like(codes, dtype=torch.bool))


def config(preset: str = "paper-gcvae", **settings: object) -> SettledConfig:
    short = {"max_steps": 60, "evaluate_every_steps": 20, "d_hidden": 16, "batch_size": 64}
    return settle(configure(preset, {**short, **settings}), n_rows=300, n_columns=3)


def fit(config: SettledConfig, **options: object) -> tuple[GenerativeModel, TrainingResult]:
    model = build_model(config, COLUMNS, seed=1)
    return model, train(model, table(), config, seed=1, **options)  # type: ignore[arg-type]


@cache
def undisturbed() -> tuple[GenerativeModel, TrainingResult]:
    """A run from its beginning to its end; nobody changes it."""
    return fit(config())


def weights(model: GenerativeModel) -> dict[str, Tensor]:
    return model.state_dict()


def same(a: GenerativeModel, b: GenerativeModel) -> bool:
    return all(torch.equal(t, weights(b)[name]) for name, t in weights(a).items())


class Memory:
    """A checkpoint store that remembers, and that fails when it has saved often enough."""

    interval_seconds = 0.0

    def __init__(self, stop_after: int = 10**9) -> None:
        self.data: bytes | None = None
        self.n_saved, self.stop_after = 0, stop_after
        self.heard: list[bool] = []

    def before_private_queries(self) -> None:
        """No run that asks its table."""

    def load(self) -> bytes | None:
        return self.data

    def restored(self, *, is_continued: bool) -> None:
        self.heard.append(is_continued)

    def save(self, data: bytes) -> None:
        if self.n_saved == self.stop_after:
            raise KeyboardInterrupt
        self.data, self.n_saved = data, self.n_saved + 1


@pytest.mark.parametrize("preset", PRESETS_TRIED)
def test_training_raises_the_held_out_bound(preset: str) -> None:
    _, result = fit(config(preset, max_steps=120))
    assert result.best.bound_held_out > result.history[0].bound_held_out + 0.3


@pytest.mark.parametrize(
    "settings",
    [
        {"objective": "exact"},
        {"score_gradient": True},
        {"locality_weight": 0.1, "locality_norm": 1},
        {"rank_weight": 1.0},
        {"n_hidden_layers": 2, "activation": "relu"},
    ],
)
def test_every_option_of_the_paper_trains(settings: dict[str, object]) -> None:
    _, result = fit(config(**settings))
    assert result.best.bound_held_out > result.history[0].bound_held_out


def test_locality_regularisation_shortens_the_loadings() -> None:
    lengths = []
    for weight in (0.0, 5.0):
        model, _ = fit(config(locality_weight=weight, learning_rate=0.01))
        loadings = model.conditional(torch.zeros(1, 2)).loadings
        assert loadings is not None
        lengths.append(loadings.norm().item())
    assert lengths[1] < 0.5 * lengths[0]


def test_patience_begins_when_the_divergence_has_its_full_weight() -> None:
    settings = {"prior": "autoregressive", "kl_warm_up": 0.8, "evaluate_every_steps": 10}
    _, result = fit(config(**settings, max_steps=100, patience_steps=10, learning_rate=0.0001))
    assert result.n_steps >= 80


def test_the_same_seed_gives_the_same_weights() -> None:
    assert same(fit(config())[0], undisturbed()[0])


@pytest.mark.parametrize("steps", [1, 31])
def test_a_run_continued_from_a_checkpoint_ends_with_the_same_bits(steps: int) -> None:
    whole, expected = undisturbed()
    memory = Memory(stop_after=steps)
    with pytest.raises(KeyboardInterrupt):
        fit(config(), checkpoints=memory)
    memory.stop_after = 10**9
    resumed, result = fit(config(), checkpoints=memory)
    assert memory.heard == [True]
    assert memory.n_saved == 60
    assert same(whole, resumed)
    assert result.history == expected.history


@pytest.mark.parametrize(
    ("steps", "settings"),
    first_of(
        (65, {}),
        (30, {}),
        (65, {"gap_weight": 0.1}),
    ),
)
def test_a_run_of_the_default_is_continued_to_the_same_bits_also_while_annealing(
    steps: int, settings: dict[str, object]
) -> None:
    settled = config("default", **settings)
    whole, expected = fit(settled)
    memory = Memory(stop_after=steps)
    with pytest.raises(KeyboardInterrupt):
        fit(settled, checkpoints=memory)
    memory.stop_after = 10**9
    resumed, result = fit(settled, checkpoints=memory)
    assert expected.n_steps > 60
    assert same(whole, resumed)
    assert result.history == expected.history


def test_a_checkpoint_of_another_run_is_left_unread() -> None:
    memory = Memory()
    fit(config(), checkpoints=memory)
    other, _ = fit(config(learning_rate=0.01), checkpoints=memory)
    assert same(other, fit(config(learning_rate=0.01))[0])
    assert memory.heard == [False]


@pytest.mark.parametrize("version", ["VERSION", "_ALGORITHM_VERSION"])
def test_a_checkpoint_of_another_version_is_left_unread(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """What a code means, and how a model is built, may be another, whatever the numbers are; or a
    step."""
    memory = Memory(stop_after=2)
    with pytest.raises(KeyboardInterrupt):
        fit(config(), checkpoints=memory)
    memory.stop_after = 10**9
    monkeypatch.setattr(training, version, getattr(training, version) + 1)
    after, _ = fit(config(), checkpoints=memory)
    assert memory.heard == [False]
    assert same(after, undisturbed()[0])


def test_the_weights_with_the_best_held_out_bound_are_kept() -> None:
    _, result = fit(config(max_steps=600, learning_rate=0.03, patience_steps=100))
    assert result.n_steps < 600
    assert result.best == max(result.history, key=lambda e: e.bound_held_out)
    assert undisturbed()[1].n_steps == 60


def test_progress_runs_from_zero_to_one_and_knows_the_bounds() -> None:
    seen: list[Progress] = []
    _, result = fit(config(), progress=seen.append)
    assert [seen[0].fraction, seen[-1].fraction] == [0.0, 1.0]
    assert seen[-1].bound_held_out == result.best.bound_held_out
    assert seen[-1].rows_per_second is not None


def test_a_callback_can_stop_the_run() -> None:
    def stop(progress: Progress) -> None:
        raise CancelledError

    with pytest.raises(CancelledError):
        fit(config(), progress=stop)


def test_reported_bounds_are_in_the_units_of_the_table() -> None:
    rows, settings = table(), config()
    scale = torch.full((300,), 2.5, dtype=torch.float64)
    plain, scaled = (
        train(build_model(settings, COLUMNS, 1), rows, settings, seed=1, log_scale=s)
        for s in (None, scale)
    )
    assert scaled.best.bound_held_out == pytest.approx(plain.best.bound_held_out - 2.5)
    assert scaled.best.bound_train == pytest.approx(plain.best.bound_train - 2.5)


def test_a_diverging_run_is_an_error_that_names_the_step() -> None:
    rows = table()
    spoiled = replace(rows, values=torch.where(rows.values > 2.0, math.inf, rows.values))
    with refuses(DivergedError):
        train(build_model(config(), COLUMNS, 1), spoiled, config(), seed=1)


def test_a_run_that_diverges_begins_anew_with_a_smaller_step_and_says_so() -> None:
    settings = config(learning_rate=1.0, activation="relu", n_hidden_layers=8)
    _, result = fit(settings)
    assert [divergence.learning_rate for divergence in result.divergences] == [1.0]
    assert math.isfinite(result.best.bound_held_out)
    assert result.n_steps > 1


@pytest.mark.parametrize("n_rows", [1, 9, 10, 11, 1000])
def test_the_split_leaves_no_row_out(n_rows: int) -> None:
    training, held_out = split(n_rows, 0.1, seed=0)
    assert len(training) > 0
    assert len(held_out) > 0
    assert sorted({*training.tolist(), *held_out.tolist()}) == list(range(n_rows))


@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rat": 1},
        {"learning_rate": "fast"},
        {"learning_rate": 0},
        {"batch_size": 0},
        {"batch_size": True},
        {"d_hidden": 10**8},
        {"rank": 2},
        {"n_hidden_layers": 10**5},
        {"d_latent": 10**4},
        {"max_steps": 10**12},
        {"hidden_dropout": 1},
        {"activation": "gelu"},
        {"locality_weight": math.nan},
    ],
)
def test_a_wrong_setting_is_named_with_what_would_be_right(settings: dict[str, object]) -> None:
    with refuses(SettingError):
        configure("paper-gcvae", settings)


def test_an_unknown_preset_lists_the_known_ones() -> None:
    with refuses(SettingError):
        preset_named("best")


def test_rules_fill_what_a_configuration_leaves_open() -> None:
    small, large = (
        settle(TrainingConfig(), n_rows=n, n_columns=d) for n, d in ((300, 8), (50_000, 60))
    )
    assert (small.d_latent, small.d_hidden, small.batch_size) == (4, 50, 32)
    assert (large.d_latent, large.d_hidden, large.batch_size) == (16, 100, 256)
    assert settle(TrainingConfig(d_latent=3), n_rows=300, n_columns=8).d_latent == 3
