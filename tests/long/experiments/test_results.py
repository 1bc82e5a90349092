"""What is kept of a run that is cut off is continued, if the rest is made alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.budgets import BUDGETS
from experiments.results import is_among, keep, lines_to_continue, read
from experiments.uci import AUTO, run

LOOK = replace(BUDGETS["look"], splits=1, preset_splits=0, uci_steps=5, drawn_rows=50)


def cut_after(lines: Iterator[dict[str, Any]], n: int) -> Iterator[dict[str, Any]]:
    return (line for line, _ in zip(lines, range(n), strict=False))


def test_a_cut_off_run_goes_on_where_it_was(data_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "auto.json"
    keep(cut_after(run(AUTO, LOOK, data_dir), 2), LOOK, path)
    before = lines_to_continue(path, LOOK)
    assert len(before) == 2
    rest = list(run(AUTO, LOOK, data_dir, before))
    keep(iter(rest), LOOK, path, before)
    found = read(path)
    assert found is not None
    assert [(line["model"], line["K"]) for line in found["lines"]] == [
        (model, 2) for model in ("VAE", "GCVAE", "GCVAE, full gradient", "GCVAE, exact")
    ]
    assert len(rest) == 2


def test_more_splits_go_on_and_other_steps_do_not(tmp_path: Path) -> None:
    path = tmp_path / "auto.json"
    assert lines_to_continue(path, LOOK) == []
    keep(iter([{"split": 0}]), LOOK, path)
    assert lines_to_continue(path, replace(LOOK, splits=7, dimensions=(1, 2))) == [{"split": 0}]
    with pytest.raises(ValueError, match="another uci_steps, batch_size: run it anew"):
        lines_to_continue(path, replace(LOOK, uci_steps=7, batch_size=9))


def test_a_line_is_found_by_all_its_members() -> None:
    lines = [{"split": 0, "K": 2, "nats": 1.0}]
    assert is_among(lines, split=0, K=2)
    assert not is_among(lines, split=0, K=5)
