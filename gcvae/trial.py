"""Tests a model that was loaded from an untrusted file before it is used."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from gcvae.artifact.checks import artifact_errors
from gcvae.errors import ArtifactError
from gcvae.scoring.scoring_setting import FULL

if TYPE_CHECKING:
    from gcvae.synthesizer import Synthesizer


_TRIAL_ROWS = 64
_TRIAL_BLANKS = 4  # rows with missing cells; each pattern of missing cells takes time to score
_TRIAL_DRAWS = 2


def try_out(synthesizer: Synthesizer) -> None:
    """Checks that a model works: generates, scores, encodes and imputes rows, and computes maps.

    Raises:
        ArtifactError: A step fails, or returns NaN or +inf.
    """
    with artifact_errors("the model in the file does not work"):
        synthesizer = copy(synthesizer)
        synthesizer.scoring = FULL  # scores are also tested if the model does not reveal them
        rows = synthesizer.sample(_TRIAL_ROWS, seed=0, frames="pandas")
        for some, is_scored in ((rows.head(_TRIAL_BLANKS), False), (rows, True)):
            scores = synthesizer.log_likelihood(
                some, draws=_TRIAL_DRAWS, score_missingness=is_scored
            )
            _require_numbers(scores["log_likelihood"], "scores")
        _require_numbers(synthesizer.encode(rows), "encodings")
        for codec in synthesizer.codec.columns:
            codes = np.arange(codec.n_codes)
            codec.decode(codes, np.linspace(-4.0, 4.0, len(codes)))
        row, first = rows.head(1), synthesizer.codec.columns[0].name
        others = [c.name for c in synthesizer.schema if c.is_modelled and c.name != first]
        kept = [name for name in others if row[name].isna().all()]  # a hard rule may require this
        blank = {first: None}  # `assign` converts dtypes that cannot hold None
        synthesizer.impute(row.assign(**blank), keep_missing=kept)
        is_minimal = synthesizer.training_record.get("is_minimal")
        for kind in ("expected",) if is_minimal else ("data", "expected"):
            found = synthesizer.dependencies(kind)
            shape = (len(found.columns),) * 2
            if found.tau.shape != shape or found.unsigned.shape != shape:
                raise ArtifactError(f"its map {kind} has not a row and a column for each column")


def _require_numbers(found: Any, what: str) -> None:
    values = np.asarray(found, dtype=np.float64)
    if np.isnan(values).any() or np.isposinf(values).any():
        raise ArtifactError(f"its {what} are no numbers")
