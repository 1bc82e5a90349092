"""The mechanisms that can be switched off, each with its seams and the lines that it takes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ablation.seams import Answer, Seam, always, found_at

_ROOT = Path(__file__).parents[2]


class Stage(StrEnum):
    """The first step of a fit that a mechanism touches: what comes before is the baseline's."""

    TRAINING = "training"
    FINISHING = "finishing"
    DRAWING = "drawing"
    CONDITIONS = "conditions"


@dataclass(frozen=True)
class Switch:
    """One mechanism.

    Attributes:
        name: In results and on the command line.
        stage: Before it nothing is done again.
        seams: That are answered without it.
        code: Files, and functions as `module:name`, whose lines are the mechanism's.
        has_conditions: Imputation is measured without it, too.
        note: What a reader of its line should know.
    """

    name: str
    stage: Stage
    seams: tuple[Seam, ...]
    code: tuple[str, ...]
    has_conditions: bool = False
    note: str = ""

    @property
    def lines(self) -> int:
        """Lines of the mechanism's files and functions."""
        return sum(map(_lines, self.code))


def _lines(code: str) -> int:
    if ":" not in code:
        return len((_ROOT / code).read_text().splitlines())
    found: Any = inspect.getattr_static(*found_at(code))
    found = found.fget if isinstance(found, property) else found
    return len(inspect.getsource(found).splitlines())


# Neutral answers


def _without_patience(original: Answer, schedule: Any) -> Any:
    return schedule.config.max_steps


def _waiting_from_the_start(original: Answer, schedule: Any) -> Any:
    config = replace(schedule.config, patience_from=0)
    return original(replace(schedule, config=config))


_SCHEDULE = "gcvae.training.schedule:Schedule."
_ASKING = "gcvae.sampling.dependent_regions:_ParentProposals."


_NOTES = {"gap": "off in this preset: `memory: low` has it", "annealing": "no end, but a control"}


def _end(name: str, attribute: str, neutral: Answer) -> Switch:
    """A switch of the training's schedule."""
    seam = Seam(_SCHEDULE + attribute, neutral)
    return Switch(
        name, Stage.TRAINING, (seam,), (_SCHEDULE + attribute,), note=_NOTES.get(name, "")
    )


_ALL = (
    Switch(
        "calibration",
        Stage.FINISHING,
        (Seam("gcvae.training.fitting:calibrate", always(None), lambda found: True),),
        (
            *(
                f"gcvae.training.calibration:{name}"
                for name in (
                    "calibrate",
                    "_draw_in_chunks",
                    "_relative_time",
                    "_rows_drawn",
                    "_calibrate_biases",
                    "_shares",
                    "_calibrated_codes",
                    "_calibrate_numbers",
                )
            ),
            "gcvae/model/monotone_transforms.py",
        ),
    ),
    Switch(
        "shrinkage",
        Stage.FINISHING,
        (
            Seam(
                "gcvae.training.fitting:shrink",
                lambda original, model, *args: [1.0] * len(model.marginals.columns),
                lambda found: min(found) < 1.0,
            ),
        ),
        tuple(
            f"gcvae.training.calibration:{name}"
            for name in ("shrink", "_factor", "_log_prob", "_scale_logits", "_network_terms")
        ),
    ),
    Switch(
        "solved regions",
        Stage.CONDITIONS,
        (
            Seam(_ASKING + "of", lambda *args: iter(()), bool),
            Seam(_ASKING + "of_dates", lambda *args: iter(()), bool),
        ),
        (
            "gcvae/sampling/solved_regions.py",
            "gcvae/sampling/date_constraints.py",
            "gcvae/rules/solutions.py",
            "gcvae.sampling.dependent_regions:_ParentProposals",
        ),
        has_conditions=True,
    ),
    Switch(
        "joint regions",
        Stage.CONDITIONS,
        (Seam("gcvae.sampling.dependent_regions:joint_regions", always({}), bool),),
        ("gcvae/sampling/joint_regions.py",),
        has_conditions=True,
    ),
    Switch(
        "deductions",
        Stage.CONDITIONS,
        (
            Seam(
                "gcvae.sampling.dependent_regions:deduced",
                lambda original, codec, frame: frame,
                lambda found: True,
            ),
        ),
        ("gcvae/sampling/deductions.py",),
        has_conditions=True,
    ),
    Switch(
        "foresight",
        Stage.CONDITIONS,
        (Seam("gcvae.sampling.particles:lookahead_regions", always({}), bool),),
        ("gcvae/sampling/lookahead.py",),
        has_conditions=True,
    ),
    Switch(
        "steps of F",
        Stage.TRAINING,
        (
            Seam(
                "gcvae.codec.number_distribution:KnotLimits.are_repeated",
                lambda original, limits, counts: np.zeros(len(counts), dtype=bool),
                lambda found: bool(found[1]),
                watched="gcvae.codec.number_distribution:_best_curve",
            ),
        ),
        (
            "gcvae.codec.repeated_numbers:RepeatedNumbers",
            "gcvae.codec.number_distribution:NumberDistribution._fitted",
        ),
    ),
    Switch(
        "atom cells",
        Stage.TRAINING,
        (
            Seam(
                "gcvae.codec.number_distribution:RoundingCells",
                always(None),
                lambda found: True,
            ),
        ),
        ("gcvae/codec/atom_cells.py",),
    ),
    Switch(
        "splits and endings",
        Stage.TRAINING,
        (
            Seam(
                "gcvae.profiling.column_fields:with_steps",
                lambda original, values, codes, column: column,
            ),
        ),
        (
            "gcvae/rules/splits.py",
            "gcvae/rules/endings.py",
            "gcvae/rules/step_search.py",
        ),
    ),
    Switch(
        "change points",
        Stage.TRAINING,
        (Seam("gcvae.training.fitting:find_change_points", always([])),),
        (
            "gcvae/model/change_points.py",
            "gcvae/training/change_points.py",
            "gcvae.training.calibration:_calibrated_bins",
        ),
    ),
    Switch(
        "clusters of the marginal CDF",
        Stage.TRAINING,
        (
            Seam(
                "gcvae.codec.number_distribution:_gaps",
                lambda original, found: np.zeros(0, dtype=np.int64),
                lambda found: len(found) > 0,
            ),
        ),
        (
            "gcvae.codec.number_distribution:NumberDistribution._with_clusters",
            "gcvae.codec.number_distribution:_gaps",
        ),
    ),
    Switch(
        "level functions",
        Stage.TRAINING,
        (Seam("gcvae.training.fitting:level_functions", always([])),),
        (
            "gcvae/model/level_functions.py",
            "gcvae.training.functions:level_functions",
            "gcvae.training.functions:_missingness_functions",
            "gcvae.training.functions:_residuals_of_missing_parents",
        ),
        has_conditions=True,
    ),
    _end("end by patience", "planned_annealing_start", _without_patience),
    _end("start of the patience", "planned_annealing_start", _waiting_from_the_start),
    _end("annealing", "annealing_steps", always(1)),
    _end("gap", "_objective", lambda original, schedule, look: look.bound_held_out),
)
SWITCHES: Mapping[str, Switch] = {switch.name: switch for switch in _ALL}
