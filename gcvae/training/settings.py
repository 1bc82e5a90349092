"""Named configurations, the settings that they are made of, and the rules for what is left open.

Loads without torch: the service checks a request's settings before any worker sees them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from gcvae.errors import Problem, SettingError
from gcvae.schema.suggestions import nearest, unknown_name
from gcvae.training.differential_privacy.budget import budget_problems
from gcvae.training.foreign_names import BESIDE_SETTINGS, EXPLAINED, FOREIGN_NAMES
from gcvae.training.setting_limits import CHOICES, range_problem

USUAL = "usual"
"""Marks a setting that people set; the others are for experts."""
MOST_HELD_OUT_ROWS = 10_000
"""More rows tell no better when to stop."""


@dataclass(frozen=True)
class TrainingConfig:
    """Every setting of a model and of its training. None means: by rule, from the table."""

    decoder: str = "copula"
    """`copula` (marginals and a Gaussian copula) or `principal-direction` (the VAE-ROC)."""
    numbers: str = "standardised"
    """How numbers are coded: `standardised`; `unit`: on [0, 1] by the column's smallest and largest
    number, with means within them (a sigmoid), as for images; or `quantile`: as atoms and normal
    scores."""
    levels: str = "listed"
    """How levels of categorical columns are coded: `listed`, in the schema's order, or `learned`:
    in the order of a correspondence analysis, rare levels sharing a code."""
    copies: bool = False
    """Whether columns that equal another in every row are copied from it, and not modelled."""
    rules: Annotated[str, USUAL] = "none"
    """`model`: what holds between the columns in most rows is found in the table, modelled with its
    exceptions and kept in drawn rows; `none`: no rules but the schema's."""
    n_components: Annotated[int, USUAL] = 1
    """Gaussians in the marginal mixture of a number; the paper has one."""
    refinement: bool = False
    """Whether an autoregressive decoder draws each column given those before it."""
    d_sum: int | None = None
    """Width of the autoregressive decoder's running sum. Rule: 32 under 1,000 rows, 64 under 3,000,
    128 from there on."""
    d_column: int | None = None
    """Width of the autoregressive decoder's layers of each column. Rule: 16 under 1,000 rows, 32
    under 3,000, then 64."""
    prior: str = "normal"
    """`normal`; `mixture`: a Gaussian mixture fitted to the posterior after training; or
    `autoregressive`: mixtures dimension by dimension, trained with the model."""
    kl_warm_up: float = 0.0
    """Share of `max_steps` over which the weight of the divergence from the prior rises to one."""
    column_dropout: float | None = 0.0
    """Mean rate at which the autoregressive decoder's input columns are dropped in training. Rule:
    0.1 under 3,000 rows, 0 from there on."""
    hidden_dropout: Annotated[float | None, USUAL] = 0.0
    """Rate at which the autoregressive decoder's hidden units are dropped in training, to the
    nearest 256th. Rule: 0.3 under 3,000 rows, 0.2 from there on."""
    weight_decay: Annotated[float | None, USUAL] = 0.0
    """Decoupled weight decay (AdamW); 0 is the paper's Adam. Rule: 0.1 under 3,000 rows, then
    0.2."""
    imagined_rows: float | None = 0.0
    """Weight, in rows, of the rows of a plain Gaussian copula that are trained on beside the
    table's. Rule: 75 under 1,000 rows, 0 from there on."""
    gradient_memory: float = 0.999
    """Decay per step of Adam's average of squared gradients (beta_2); the paper has Adam's own."""
    averaging: float = 0.0
    """Decay per step of the exponential average of the weights that is kept; 0 keeps the last."""
    annealing: float = 0.0
    """Updates over which the learning rate falls to zero after it was held, as a share of the
    updates until then, 0.4 of that where patience ended it; 0 stops at once."""
    gradient_limit: float | None = None
    """Norm to which gradients are cut."""
    calibration: bool = False
    """Whether code probabilities are shifted (and an autoregressive decoder's numbers moved by a
    monotone transform) after training, so that the model's one-way margins are those of the
    training table; before that, an autoregressive decoder's logits are shrunk where held-out rows
    are likelier by it."""
    rank: Annotated[int, USUAL] = 1
    """Rank of A in the copula's Psi = omega I + A A^T; 0 is independence, the plain VAE."""
    d_latent: Annotated[int | None, USUAL] = None
    """Dimensions of z. Rule: half the modelled columns, at least 2 and at most 16."""
    d_hidden: Annotated[int | None, USUAL] = None
    """Units in each hidden layer. Rule: 50 under 1,000 rows, 100 from there on."""
    n_hidden_layers: Annotated[int, USUAL] = 1
    """Hidden layers of the encoder and of the decoder."""
    activation: str = "tanh"
    """`tanh`, `relu` or `silu`."""
    score_gradient: bool = False
    """Whether the copula's gradient also runs through the normal scores; the paper holds them
    constant, as in inference for margins."""
    objective: str = "jitter"
    """`jitter`: the continuous extension with one draw per row, as in the paper; `exact`: the mixed
    likelihood without jitter (rank 1)."""
    locality_weight: float = 0.0
    """lambda_a of the locality regulariser |a|_p^2, nats per row."""
    locality_norm: int = 2
    """p of the locality regulariser: 1 or 2."""
    rank_weight: float = 0.0
    """lambda_r of the rank regulariser, nats per row."""
    learning_rate: Annotated[float | None, USUAL] = 1e-3
    """Adam's step size. Rule: 0.002 under 3,000 rows, 0.006 from there on."""
    batch_size: Annotated[int | None, USUAL] = None
    """Rows per minibatch. Rule: the power of two nearest to rows / 50, within 32 and 256; 512 from
    100,000 rows on."""
    max_steps: Annotated[int | None, USUAL] = 10_000
    """Parameter updates at most before annealing (the paper's limit on UCI Auto). Rule:
    `max_passes` over the rows, at least 400 updates; from 30,000 rows on the passes fall with the
    square root of the rows."""
    max_passes: Annotated[float, USUAL] = 11.0
    """Passes over the rows at most before annealing, where `max_steps` is left to its rule."""
    patience_steps: Annotated[int | None, USUAL] = 2_000
    """Updates without an improvement of the held-out bound after which the learning rate falls, or
    training stops where there is no annealing. Rule: a pass over the rows, at least 100."""
    min_improvement: float = 0.0
    """Nats per row by which the held-out bound has to rise for the patience to begin anew."""
    patience_from: int | None = 0
    """The update before which patience ends no run: while z comes into use, the held-out bound
    falls for a while although rows are described better. Rule: a third of `max_steps`' rule."""
    evaluate_every_steps: int | None = 100
    """Updates between two looks at the held-out bound. Rule: half a pass over the rows, at least
    20 and at most 200."""
    gap_weight: float = 0.0
    """What a nat weighs by which rows of training are likelier than held-out ones: training keeps
    the weights, and stops, where the held-out bound less so much of the gap is best."""
    held_out_share: float = 0.1
    """Share of the rows that decides when to stop, at most 10,000 rows of them; under 10 rows the
    training rows decide."""
    rare_level_rows: Annotated[int, USUAL] = 1
    """Rows that have to share a value for the model to tell it as a column's smallest or largest:
    others are rounded outward to plain numbers. A rounded number that comes again is one of its own
    where so many rows have it, and five. Where `levels` is `learned`, a level of fewer rows
    is not in the model either: others stand for it by their shares, or "(other)" where most cells
    have such a level. 1 tells all."""
    memory: Annotated[str, USUAL] = "normal"
    """How much may be learned of single rows. `low`: as little as costs little else: `gap_weight`
    is 1 and `rare_level_rows` 12, each unless it is given (docs/privacy.md)."""
    report_share: float = 0.0
    """Share of the rows, at most 20,000, that training leaves to a report; 0 holds none back."""
    differential_privacy: Annotated[Mapping[str, Any], USUAL] = field(default_factory=dict)
    """`{"epsilon": 3, "delta": 1e-6}`, with or without `target` and `discover`: what any one row
    may change (docs/differential-privacy.md). Empty promises nothing."""


@dataclass(frozen=True, kw_only=True)
class SettledConfig(TrainingConfig):
    """A configuration that leaves nothing to its rules; `settle` makes it of one that may.

    A field of its own for each setting with a rule: `field()` takes the base's default away.
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
    """A configuration with a name and a sentence on what it is for."""

    name: str
    description: str
    config: TrainingConfig


_BEYOND_THE_PAPER = TrainingConfig(
    rare_level_rows=5,
    numbers="quantile",
    levels="learned",
    copies=True,
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
            "GCVAE with mixture marginals and an autoregressive decoder: the highest fidelity.",
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
            "The default's model with narrow layers and a third of its passes, for a first look.",
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
            "Copula model alone, with mixture marginals and a learned prior: its samples, scores "
            "and maps are one model.",
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
            "Gaussian copula VAE of the paper: Gaussian and categorical marginals, rank-1 copula.",
            TrainingConfig(),
        ),
        Preset(
            "paper-vae",
            "Plain VAE of the paper: the same marginals, independent given z.",
            TrainingConfig(rank=0),
        ),
        Preset(
            "paper-vae-roc",
            "VAE-ROC of the paper: N(mu, omega I + a a^T) over the continuous columns.",
            TrainingConfig(decoder="principal-direction"),
        ),
    )
}


_LOW_MEMORY: dict[str, Any] = {"gap_weight": 1.0, "rare_level_rows": 12}
"""What the models of `memory: low` have."""


def usual_settings() -> list[str]:
    """Returns the names of the settings that people set."""
    hints = get_type_hints(TrainingConfig, include_extras=True)
    return [name for name, hint in hints.items() if USUAL in getattr(hint, "__metadata__", ())]


def preset_named(name: str) -> Preset:
    """Returns the preset of that name.

    Raises: SettingError that lists the names there are.
    """
    preset = PRESETS.get(name) if isinstance(name, str) else None
    if preset is None:
        problem = unknown_name(f"unknown preset {name!r}", name, PRESETS, pointer="/preset")
        raise SettingError(problem)
    return preset


def configure(preset: str, settings: Mapping[str, object] | None = None) -> TrainingConfig:
    """Returns the preset's configuration with `settings` in the place of its own.

    Raises: SettingError that names every setting which is unknown or out of range.
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
    if config.objective == "exact" and config.rank > 1 and config.decoder == "copula":
        raise SettingError(
            Problem(
                f"the exact objective has no quadrature for rank {config.rank}",
                pointer="/objective",
                expected="rank 0 or 1, or objective jitter",
            )
        )
    return config


def _private_problems(settings: Mapping[str, object]) -> list[Problem]:
    """What is wrong with the promise of differential privacy, if one is made."""
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
    """Settings with whole numbers turned to floats where the field is a float."""
    hints = get_type_hints(TrainingConfig)
    return {
        key: float(value) if hints[key] is float and isinstance(value, int) else value
        for key, value in settings.items()
    }


def _problem_of(key: str, value: object) -> Problem | None:
    """What is wrong with one setting, or None."""
    hints = get_type_hints(TrainingConfig)
    pointer = f"/{key}"
    if key not in hints:
        return _unknown_setting(key, [*hints])
    is_mapping = get_origin(hints[key]) is Mapping
    types = (Mapping,) if is_mapping else get_args(hints[key]) or (hints[key],)
    if not _is_a(value, types):
        names = " or ".join(_TYPE_NAMES.get(t, t.__name__) for t in types)
        return Problem(f"setting {key} is {value!r}", pointer=pointer, expected=names)
    if key in CHOICES and value not in CHOICES[key]:
        expected = f"one of {', '.join(map(str, CHOICES[key]))}"
        return Problem(f"setting {key} is {value!r}", pointer=pointer, expected=expected)
    return range_problem(key, value)


_TYPE_NAMES = {type(None): "null", Mapping: "an object"}


def meant_setting(name: str) -> str | None:
    """Returns the setting, or what stands beside the settings, that a name means: it may be
    misspelled, or another tool's. None where it is like none.

    >>> meant_setting("n_epochs"), meant_setting("max_step"), meant_setting("colour")
    ('max_passes', 'max_steps', None)
    """
    own = nearest(name, [*get_type_hints(TrainingConfig), *BESIDE_SETTINGS])
    return FOREIGN_NAMES.get(name.lower(), own)


def _unknown_setting(key: str, known: list[str]) -> Problem:
    """What is wrong with a name: it is misspelled, another tool's, or no setting at all."""
    alike = nearest(key, [*known, *BESIDE_SETTINGS, *FOREIGN_NAMES])
    meant = None if alike is None else FOREIGN_NAMES.get(alike, alike)
    explained = f" ({EXPLAINED[meant]})" if meant in EXPLAINED and alike not in known else ""
    expected = f"one of {', '.join(usual_settings()[:6])}, ...: `gcvae settings` lists all"
    message = f"unknown setting {key!r}{explained}"
    return Problem(message, f"/{key}", suggestion=meant, expected=expected)


def _is_a(value: object, types: tuple[type, ...]) -> bool:
    """Returns whether a value from JSON is of one of the types; a boolean is no number."""
    if isinstance(value, bool):
        return bool in types
    return isinstance(value, types) or (float in types and isinstance(value, int))


def settle(config: TrainingConfig, *, n_rows: int, n_columns: int) -> SettledConfig:
    """Returns the configuration with every setting that is left open replaced by its rule.

    `n_rows` counts the table's rows, `n_columns` its modelled columns.
    """
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
