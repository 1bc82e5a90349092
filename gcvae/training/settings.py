"""Presets, their settings, and the rules that compute missing settings from the table's size.

The module does not import torch, because the service imports it to check settings.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from gcvae.errors import Problem, SettingError
from gcvae.schema.suggestions import nearest, unknown_name
from gcvae.training.differential_privacy.budget import budget_problems
from gcvae.training.foreign_names import BESIDE_SETTINGS, EXPLAINED, FOREIGN_NAMES

USUAL = "usual"
"""Annotation of the settings that are for all users; settings without it are for experts."""


class Range(NamedTuple):
    """Annotation of a number: its minimum and maximum; with `is_open`, the minimum is excluded.

    Maxima are above the values that any table needs, and low enough for a machine's memory.
    """

    least: float
    most: float | None = None
    is_open: bool = False

    def expected(self, value: float) -> str | None:
        """Returns a description of the valid values, for errors; None if the value is valid."""
        most = math.inf if self.most is None else self.most
        if not math.isfinite(value):
            return "a finite number"
        if self.is_open and not self.least < value <= most:
            return f"above {self.least}, at most {most}"
        if value < self.least:
            return f"at least {self.least}"
        return f"at most {most}" if value > most else None


MOST_HELD_OUT_ROWS = 10_000
"""Maximum number of held-out rows."""


@dataclass(frozen=True)
class TrainingConfig:
    """All settings of a model and its training (docs/settings.md describes each).

    Where a setting has a rule, None stands for the value that `settle` computes from the table's
    size.
    """

    decoder: Literal["copula", "principal-direction"] = "copula"
    """Decoder given z: `copula` (marginals that a Gaussian copula joins) or `principal-direction`
    (the VAE-ROC of the paper)."""
    encoding: Literal["standardised", "unit", "quantile"] = "standardised"
    """How cells are encoded. `standardised`: numbers by mean and standard deviation, levels in the
    order of the schema. `unit`, for images: numbers scaled to [0, 1]; a sigmoid bounds the
    decoder's means. `quantile`: numbers that repeat often as categories, others as standard normal
    quantiles of their ranks; levels in the order of a correspondence analysis, with rare levels in
    shared categories; and a column that equals another one in every row is copied."""
    rules: Annotated[Literal["model", "none"], USUAL] = "none"
    """Rules between columns that generated rows follow. `none`: hard rules and rules in the user's
    schema. `model`: additionally rules inferred from the table, with their exceptions."""
    n_components: Annotated[int, Range(1, 128), USUAL] = 1
    """Number of Gaussian components in the marginal distribution of a numeric column."""
    refinement: bool = False
    """Whether the model has an autoregressive decoder, which generates each column given z and the
    preceding columns."""
    d_sum: Annotated[int | None, Range(1, 4096)] = None
    """Width of the vector in which the autoregressive decoder sums the embeddings of the preceding
    columns. Rule: 32 under 1,000 rows, 64 under 3,000 rows, else 128."""
    d_column: Annotated[int | None, Range(1, 4096)] = None
    """Width of the autoregressive decoder's layers for each column. Rule: 16 under 1,000 rows, 32
    under 3,000 rows, else 64."""
    prior: Literal["normal", "mixture", "autoregressive"] = "normal"
    """Prior of z. `normal`: N(0, I). `mixture`: a Gaussian mixture, fitted after training.
    `autoregressive`: a mixture for each dimension given the preceding ones, trained with the
    model."""
    kl_warm_up: Annotated[float, Range(0, 1)] = 0.0
    """Share of `max_steps` over which the weight of the KL divergence in the loss rises to one."""
    column_dropout: Annotated[float | None, Range(0, 0.99)] = 0.0
    """Mean dropout rate of the autoregressive decoder's input columns. Rule: 0.1 under 3,000 rows,
    else 0."""
    hidden_dropout: Annotated[float | None, Range(0, 0.99), USUAL] = 0.0
    """Dropout rate of the autoregressive decoder's hidden units. Rule: 0.3 under 3,000 rows, else
    0.2."""
    weight_decay: Annotated[float | None, Range(0), USUAL] = 0.0
    """Decoupled weight decay (AdamW). Rule: 0.1 under 3,000 rows, else 0.2."""
    imagined_rows: Annotated[float | None, Range(0, 10_000)] = 0.0
    """Total weight, in rows, of augmentation rows, which come from a Gaussian copula fitted to the
    table. Rule: 75 under 1,000 rows, else 0."""
    gradient_memory: Annotated[float, Range(0, 0.99999)] = 0.999
    """Decay per update of Adam's average of squared gradients (beta_2)."""
    averaging: Annotated[float, Range(0, 0.99999)] = 0.0
    """Decay per update of a moving average of the weights. The model has the averaged weights; with
    0, the last ones."""
    annealing: Annotated[float, Range(0)] = 0.0
    """Length of the last phase of training, in which the learning rate falls to zero, as a multiple
    of the updates before. After early stopping, the phase has 0.4 of this length. With 0, there is
    no such phase."""
    gradient_limit: Annotated[float | None, Range(0)] = None
    """Norm to which gradients are clipped; null means no clipping."""
    calibration: bool = False
    """Whether two corrections follow training. First, logits are shrunk where this raises the
    held-out likelihood. Then the distribution of each column is matched to that of the table."""
    rank: Annotated[int, Range(0, 1), USUAL] = 1
    """Rank of the copula: 1 for the matrix I + a a^T; 0 for columns independent given z, as in a
    usual VAE."""
    d_latent: Annotated[int | None, Range(1, 512), USUAL] = None
    """Dimensions of the latent vector z. Rule: half the number of modelled columns, from 2 to
    16."""
    d_hidden: Annotated[int | None, Range(1, 8192), USUAL] = None
    """Units in each hidden layer. Rule: 50 under 1,000 rows, else 100."""
    n_hidden_layers: Annotated[int, Range(1, 32), USUAL] = 1
    """Number of hidden layers of the encoder, and of the decoder."""
    activation: Literal["tanh", "relu", "silu"] = "tanh"
    """Activation function of hidden units: `tanh`, `relu` or `silu`."""
    score_gradient: bool = False
    """Whether gradients of the copula also flow through the normal scores."""
    objective: Literal["jitter", "exact"] = "jitter"
    """Likelihood of discrete columns in a copula. `jitter`: each discrete cell becomes a random
    point of its interval (continuous extension), as in the paper. `exact`: the likelihood is
    integrated over the interval."""
    locality_weight: Annotated[float, Range(0)] = 0.0
    """Weight of the locality regulariser, in nats per row: the squared norm of a (see `rank`), or
    of the principal direction."""
    locality_norm: Literal[1, 2] = 2
    """Norm in the locality regulariser: 1 (sum of absolute values) or 2 (Euclidean)."""
    rank_weight: Annotated[float, Range(0)] = 0.0
    """Weight of the rank regulariser, which pulls z towards N(0, I), in nats per row."""
    learning_rate: Annotated[float | None, Range(0, 1, is_open=True), USUAL] = 1e-3
    """Step size of Adam. Rule: 0.002 under 3,000 rows, else 0.006."""
    batch_size: Annotated[int | None, Range(1, 1_000_000), USUAL] = None
    """Rows per minibatch. Rule: the power of two nearest to rows / 50, from 32 to 256; 512 from
    100,000 rows on."""
    max_steps: Annotated[int | None, Range(1, 100_000_000), USUAL] = 10_000
    """Maximum number of updates before the learning rate falls (see `annealing`). Rule:
    `max_passes` passes over the rows, at least 400 updates. From 30,000 rows on, the number of
    passes decreases with the square root of the number of rows."""
    max_passes: Annotated[float, Range(0.1), USUAL] = 11.0
    """Maximum number of passes over the rows (epochs); the rule of `max_steps` uses it."""
    patience_steps: Annotated[int | None, Range(1, 100_000_000), USUAL] = 2_000
    """Number of updates without an improvement after which annealing begins, or training ends if
    there is no annealing. An improvement is a rise of the held-out bound, a lower bound on the
    log-likelihood of the held-out rows. Rule: one pass over the rows, at least 100."""
    min_improvement: Annotated[float, Range(0, 100)] = 0.0
    """Smallest rise of the held-out bound that counts as an improvement, in nats per row."""
    patience_from: Annotated[int | None, Range(0, 100_000_000)] = 0
    """Update before which annealing does not begin, even without improvements (see
    `patience_steps`). Rule: a third of the value that the rule of `max_steps` gives."""
    evaluate_every_steps: Annotated[int | None, Range(1, 100_000_000)] = 100
    """Number of updates between two evaluations of the held-out bound. Rule: half a pass over the
    rows, from 20 to 200."""
    gap_weight: Annotated[float, Range(0, 100)] = 0.0
    """Weight of the gap, which is the bound on training rows minus the held-out bound. Training
    keeps the weights with the largest held-out bound - gap_weight x gap. Larger values reduce
    memorisation."""
    held_out_share: Annotated[float, Range(0, 0.5, is_open=True)] = 0.1
    """Share of rows that are held out to determine when training stops, at most 10,000 rows. In
    tables with less than 10 rows, no rows are held out, and the training rows determine it."""
    rare_level_rows: Annotated[int, Range(0, 1_000_000), USUAL] = 1
    """Number of rows that must have a value before the model may contain it; with 1, it may contain
    every value. A minimum or maximum of fewer rows is rounded outward. With `encoding: quantile`, a
    level of fewer rows is replaced by more frequent ones, or by "(other)" if most cells of the
    column are rare. A number that repeats in less than 0.5 % of the rows gets a step in the
    distribution function of its column only if this many rows, and at least five, have it."""
    memory: Annotated[Literal["normal", "low"], USUAL] = "normal"
    """How much the model may learn from single rows: `normal` or `low`. `low` sets `gap_weight` to
    1 and `rare_level_rows` to 12, unless they are given (docs/privacy.md)."""
    report_share: Annotated[float, Range(0, 0.5)] = 0.0
    """Share of rows that training does not use at all, so that a report can compare the model with
    them; at most 20,000 rows."""
    differential_privacy: Annotated[Mapping[str, Any], USUAL] = field(default_factory=dict)
    """Privacy budget that bounds the influence of any one row, such as
    `{"epsilon": 3, "delta": 1e-6}`, optionally with `target` and `discover`
    (docs/differential-privacy.md). With an empty object, there is no bound."""


@dataclass(frozen=True, kw_only=True)
class SettledConfig(TrainingConfig):
    """Resolved settings, as `settle` returns them: every setting with a rule has a value.

    Settings with a rule are declared again with `field()`, which removes the default.
    """

    d_sum: int = field()
    d_column: int = field()
    column_dropout: float = field()
    hidden_dropout: float = field()
    weight_decay: float = field()
    imagined_rows: float = field()
    d_latent: int = field()
    d_hidden: int = field()
    learning_rate: float = field()
    batch_size: int = field()
    max_steps: int = field()
    patience_steps: int = field()
    patience_from: int = field()
    evaluate_every_steps: int = field()


@dataclass(frozen=True)
class Preset:
    """Named settings for training.

    Attributes:
        name: Name of the preset, which users select.
        description: One sentence for users.
        config: The settings.
    """

    name: str
    description: str
    config: TrainingConfig


_BEYOND_THE_PAPER = TrainingConfig(
    rare_level_rows=5,
    encoding="quantile",
    n_components=8,
    d_latent=8,
    d_hidden=128,
    n_hidden_layers=2,
    activation="silu",
    score_gradient=True,
    prior="mixture",
    column_dropout=None,
    hidden_dropout=None,
    learning_rate=None,
    weight_decay=None,
    gradient_memory=0.99,
    averaging=0.997,
    annealing=1.0,
    min_improvement=0.03,
    gradient_limit=5.0,
    max_steps=None,
    patience_steps=None,
    patience_from=None,
    evaluate_every_steps=None,
)

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "default",
            "Mixture marginals and an autoregressive decoder; the highest fidelity.",
            replace(
                _BEYOND_THE_PAPER,
                refinement=True,
                rules="model",
                calibration=True,
                imagined_rows=None,
            ),
        ),
        Preset(
            "fast",
            "As `default`, with narrower layers and a third of the passes, for quick results.",
            replace(
                _BEYOND_THE_PAPER,
                refinement=True,
                rules="model",
                calibration=True,
                d_hidden=64,
                d_sum=64,
                d_column=32,
                n_components=5,
                learning_rate=0.01,
                max_passes=4.0,
            ),
        ),
        Preset(
            "gcvae",
            "Copula model with mixture marginals and a learned prior; samples, scores and maps "
            "come from the same copula.",
            replace(
                _BEYOND_THE_PAPER,
                prior="autoregressive",
                calibration=True,
                d_latent=16,
                d_hidden=256,
                kl_warm_up=0.6,
                max_passes=16.0,
                patience_steps=600,
            ),
        ),
        Preset(
            "paper-gcvae",
            "The paper's Gaussian copula VAE, with Gaussian and categorical marginals and a "
            "copula of rank 1.",
            TrainingConfig(),
        ),
        Preset(
            "paper-vae",
            "The paper's VAE, with the same marginals; columns are independent given z.",
            TrainingConfig(rank=0),
        ),
        Preset(
            "paper-vae-roc",
            "The paper's VAE-ROC; numeric columns are Gaussian with one principal direction.",
            TrainingConfig(decoder="principal-direction"),
        ),
    )
}


_LOW_MEMORY: dict[str, Any] = {"gap_weight": 1.0, "rare_level_rows": 12}
"""Settings that `memory: low` changes."""


def usual_settings() -> list[str]:
    """Returns the names of the settings that are for all users, not only for experts."""
    hints = get_type_hints(TrainingConfig, include_extras=True)
    return [name for name, hint in hints.items() if USUAL in getattr(hint, "__metadata__", ())]


def preset_named(name: str) -> Preset:
    """Returns the preset with this name.

    Raises:
        SettingError: The preset does not exist; the error lists the names.
    """
    preset = PRESETS.get(name) if isinstance(name, str) else None
    if preset is None:
        problem = unknown_name(f"unknown preset {name!r}", name, PRESETS, pointer="/preset")
        raise SettingError(problem)
    return preset


def configure(preset: str, settings: Mapping[str, object] | None = None) -> TrainingConfig:
    """Returns the settings of a preset, with some of them replaced.

    Args:
        settings: Values by name that replace those of the preset.

    Raises:
        SettingError: The preset does not exist, or settings are unknown, out of range or contradict
            each other; the error names each.
    """
    config = preset_named(preset).config
    problems = [
        problem
        for key, value in (settings or {}).items()
        if (problem := _problem_of(key, value)) is not None
    ]
    problems += _private_problems(settings or {})
    if problems:
        raise SettingError(*problems)
    config = dataclasses.replace(config, **_plain(settings or {}))
    if config.memory == "low":
        own = {name: value for name, value in _LOW_MEMORY.items() if name not in (settings or {})}
        config = dataclasses.replace(config, **own)
    return config


def _private_problems(settings: Mapping[str, object]) -> list[Problem]:
    """Returns the errors in `differential_privacy` and in settings that contradict it."""
    setting = settings.get("differential_privacy")
    if not isinstance(setting, Mapping) or not setting:
        return []
    problems = budget_problems(setting)
    if settings.get("report_share"):
        message = "report_share holds back other rows where one row more or less is in the table"
        expected = "0 under differential privacy"
        problems.append(Problem(message, "/report_share", expected=expected))
    return problems


def _plain(settings: Mapping[str, object]) -> dict[str, Any]:
    hints = get_type_hints(TrainingConfig)
    return {
        key: float(value) if hints[key] is float and isinstance(value, int) else value
        for key, value in settings.items()
    }


def _problem_of(key: str, value: object) -> Problem | None:
    """Returns the error in one setting, which is unknown, of a wrong type or out of range; None if
    it is valid."""
    hints = get_type_hints(TrainingConfig, include_extras=True)
    if key not in hints:
        return _unknown_setting(key, [*hints])
    kinds, choices, limits = _allowed(hints[key])
    expected = None
    if not _is_a(value, kinds):
        expected = " or ".join(_TYPE_NAMES.get(kind, kind.__name__) for kind in kinds)
    elif choices and value not in choices:
        expected = f"one of {', '.join(map(str, choices))}"
    elif limits and isinstance(value, int | float):
        expected = limits.expected(value)
    if expected is None:
        return None
    return Problem(f"setting {key} is {value!r}", f"/{key}", expected=expected)


def _allowed(hint: Any) -> tuple[tuple[type, ...], tuple[object, ...], Range | None]:
    """Returns (types, values, range) that a setting's type hint allows. The values are empty unless
    the hint is a `Literal`; the range is None if the hint has none."""
    if get_origin(hint) is Annotated:
        kinds, choices, _ = _allowed(hint.__origin__)
        return kinds, choices, next((x for x in hint.__metadata__ if isinstance(x, Range)), None)
    if get_origin(hint) is Literal:
        return (type(get_args(hint)[0]),), get_args(hint), None
    if get_origin(hint) is Mapping:
        return (Mapping,), (), None
    return get_args(hint) or (hint,), (), None


_TYPE_NAMES = {type(None): "null", Mapping: "an object"}


def meant_setting(name: str) -> str | None:
    """Returns the setting or argument of `fit` that a wrong name probably means, or None.

    The name may be misspelled, or may be the name of the setting in another tool.

    >>> meant_setting("n_epochs"), meant_setting("max_step"), meant_setting("colour")
    ('max_passes', 'max_steps', None)
    """
    own = nearest(name, [*get_type_hints(TrainingConfig), *BESIDE_SETTINGS])
    return FOREIGN_NAMES.get(name.lower(), own)


def _unknown_setting(key: str, known: list[str]) -> Problem:
    if key in BESIDE_SETTINGS:
        expected = f"an argument of its own: `{key}=...` in Python, `--{key}` of the command"
        return Problem(f"{key!r} is not a setting", f"/{key}", expected=expected)
    alike = nearest(key, [*known, *BESIDE_SETTINGS, *FOREIGN_NAMES])
    meant = None if alike is None else FOREIGN_NAMES.get(alike, alike)
    explained = f" ({EXPLAINED[meant]})" if meant in EXPLAINED and alike not in known else ""
    expected = f"one of {', '.join(usual_settings()[:6])}, ...: `gcvae settings` lists all"
    message = f"unknown setting {key!r}{explained}"
    return Problem(message, f"/{key}", suggestion=meant, expected=expected)


def _is_a(value: object, types: tuple[type, ...]) -> bool:
    """Returns whether a JSON value has one of the types; a boolean is not a number."""
    if isinstance(value, bool):
        return bool in types
    return isinstance(value, types) or (float in types and isinstance(value, int))


def settle(config: TrainingConfig, *, n_rows: int, n_columns: int) -> SettledConfig:
    """Returns settings in which every None of a setting with a rule is replaced by the value that
    the rule computes from the numbers of rows and modelled columns of the table."""
    is_tiny, is_small = n_rows < 1000, n_rows < 3000
    d_latent = min(max(2, round(n_columns / 2)), 16)
    d_hidden = 50 if is_tiny else 100
    batch_size = min(max(32, 2 ** round(math.log2(max(n_rows, 1) / 50))), 256)
    batch_size = batch_size if n_rows < 100_000 else 512
    n_held_out = min(config.held_out_share * n_rows, MOST_HELD_OUT_ROWS)
    steps_per_pass = math.ceil((n_rows - n_held_out) / (config.batch_size or batch_size))
    n_passes = config.max_passes * math.sqrt(min(1.0, 30_000 / max(n_rows, 1)))
    max_steps = max(400, round(n_passes * steps_per_pass))
    evaluate_every_steps = min(max(20, steps_per_pass // 2), 200)
    rules: dict[str, Any] = {
        "d_latent": d_latent,
        "d_hidden": d_hidden,
        "d_sum": 32 if is_tiny else 64 if is_small else 128,
        "d_column": 16 if is_tiny else 32 if is_small else 64,
        "batch_size": batch_size,
        "max_steps": max_steps,
        "learning_rate": 0.002 if is_small else 0.006,
        "column_dropout": 0.1 if is_small else 0.0,
        "hidden_dropout": 0.3 if is_small else 0.2,
        "weight_decay": 0.1 if is_small else 0.2,
        "imagined_rows": 75.0 if is_tiny else 0.0,
        "evaluate_every_steps": evaluate_every_steps,
        "patience_steps": max(100, steps_per_pass),
        "patience_from": round(max_steps / 3),
    }
    open_settings = {name: rule for name, rule in rules.items() if getattr(config, name) is None}
    return SettledConfig(**(vars(config) | open_settings))
