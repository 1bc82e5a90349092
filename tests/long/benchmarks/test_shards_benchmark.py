"""The short form of `python -m benchmarks.shards`: real workers, some killed at work."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.shards import add_model, draw, orphans, place_in
from catalog.job_kinds import SampleSpec
from gcvae import Synthesizer, read_table

_ROWS = [f"{i % 37 / 10:.1f},{'yes' if i * 7 % 11 < 4 else 'no'},{i * i % 101}" for i in range(300)]
TABLE = ("height,smoker,weight\n" + "\n".join(_ROWS) + "\n").encode()


@pytest.fixture(scope="module")
def synthesizer() -> Synthesizer:
    quick = {"max_steps": 20, "evaluate_every_steps": 20}
    return Synthesizer.fit(
        read_table(TABLE), preset="paper-gcvae", settings=quick, seed=0, device="cpu"
    )


def test_one_worker_and_three_of_which_two_are_killed_give_the_same_bytes(
    synthesizer: Synthesizer, tmp_path: Path
) -> None:
    spec = SampleSpec(rows=20_000, seed=1, format="csv")
    with place_in(tmp_path, lease_seconds=2.0) as place:
        model_id = add_model(place, synthesizer)
        whole = draw(place, "whole", model_id, spec, shard_rows=None, workers=1)
        killed = draw(place, "killed", model_id, spec, shard_rows=8192, workers=3, kill=2)
        assert orphans(place) == []
    assert (whole.shards, killed.shards, whole.attempts) == (0, 3, 1)
    assert killed.attempts > 4  # those of the killed workers were made again
    assert killed.sha256 == whole.sha256
