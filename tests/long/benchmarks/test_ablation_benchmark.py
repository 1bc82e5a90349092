"""The switches of the ablation: what each turns off is there, and is asked in a fit."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.ablation.page import MEASURES, losses_of, render_page, verdict_of
from benchmarks.ablation.rules_kept import rules_of, share_of_broken_rows, shares_kept
from benchmarks.ablation.seams import found_at, switched_off, watched
from benchmarks.ablation.switches import SWITCHES
from gcvae import Synthesizer, parse_table

QUICK = {"d_hidden": 16, "d_sum": 16, "d_column": 8, "d_latent": 2, "n_components": 2,
         "max_steps": 60, "evaluate_every_steps": 20}  # fmt: skip
IN_USE = {"splits and endings", "calibration", "atom cells", "solved regions",
          "level functions"}  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """A shop's rows: minutes in steps of 5, a frequent price, keys, and a sum."""
    random = np.random.default_rng(0)
    n = 400
    city, fee = random.integers(0, 6, n), random.integers(0, 30, n)
    price = np.where(random.random(n) < 0.3, 9.99, random.normal(60, 15, n).round(2))
    minutes = 5 * random.integers(0, 200, n)
    columns = {
        "key": [f"AB-{i:05d}" for i in random.permutation(n)],
        "city": [f"town {c}" for c in city],
        "country": [f"land {c // 2}" for c in city],
        "price": price.astype(str),
        "minutes": minutes.astype(str),
        "fee": fee.astype(str),
        "total": (minutes + fee).astype(str),
    }
    return pd.DataFrame(columns)


def used(table: pd.DataFrame) -> tuple[Synthesizer, pd.DataFrame]:
    """A small model, and rows of it; rows of the table with blanks are filled, too."""
    model = Synthesizer.fit(table, settings=QUICK, seed=0, device="cpu")
    model.impute(table[:3].assign(minutes="", fee="", country=""), seed=0)
    return model, model.sample(50, seed=0)


@pytest.fixture(scope="module")
def baseline(table):
    """(model, targets that were asked, mechanisms that made a difference)."""
    every = {
        seam.target: [replace(seam, watched=None, differs=lambda found: True)]
        for switch in SWITCHES.values()
        for seam in switch.seams
    }
    seams = {name: switch.seams for name, switch in SWITCHES.items()}
    with watched(every) as asked, watched(seams) as in_use:
        model, _ = used(table)
    return model, asked, in_use


@pytest.mark.parametrize("switch", SWITCHES.values(), ids=list(SWITCHES))
def test_what_a_switch_names_is_there(switch) -> None:
    for seam in switch.seams:
        found_at(seam.target)
        found_at(seam.watched or seam.target)
    assert switch.lines > 0


def test_a_fit_asks_every_seam(baseline) -> None:
    targets = {seam.target for switch in SWITCHES.values() for seam in switch.seams}
    assert targets == baseline[1]


def test_mechanisms_in_use_are_told(baseline) -> None:
    assert baseline[2] >= IN_USE
    assert not baseline[2] & {"gap", "number names"}


def test_switches_take_mechanisms_away(table) -> None:
    names = ("splits and endings", "atom cells", "level functions")
    seams = [seam for name in names for seam in SWITCHES[name].seams]
    with switched_off(seams) as asked:
        model, _ = used(table)
    assert asked == {seam.target for seam in seams}
    assert model.schema["minutes"].steps is None
    assert model.model.decoder.functions == ()
    columns = {codec.name: codec for codec in model.codec.columns}
    assert columns["price"].distribution.atom_cells is None


def test_a_decorated_library_is_whole_again(table) -> None:
    owner, name = found_at("gcvae.training.fitting:calibrate")
    before = getattr(owner, name)
    with switched_off(SWITCHES["calibration"].seams):
        assert getattr(owner, name) is not before
    assert getattr(owner, name) is before


def test_real_rows_keep_the_rules_and_shuffled_ones_break_them(table, baseline) -> None:
    schema = baseline[0].schema
    judges = rules_of(schema, table)
    kept = shares_kept(judges, table, schema)
    assert len(kept) >= 4
    assert min(kept.values()) > 0.9
    shuffled = table.assign(total=table["total"].to_numpy()[::-1])
    assert min(shares_kept(judges, shuffled, schema).values()) < 0.5
    assert share_of_broken_rows(judges, table, shuffled, schema) > 0.9
    assert share_of_broken_rows(judges, table, table, schema) == 0.0
    assert len(parse_table(table, schema)) == len(table)


def _runs(worse: dict[str, float]) -> list[dict[str, object]]:
    """Baselines of two tables, and a variant whose C2ST is so much worse on each."""
    common = {"rules": {}, "fit_seconds": 1.0, "wall_seconds": 1.0}
    common |= {"in_use": ["calibration"], "watched": ["calibration"]}
    runs: list[dict[str, object]] = []
    for table, loss in worse.items():
        for seed, c2st in enumerate((0.6, 0.602, 0.598)):
            runs.append(common | {"table": table, "switch": "", "seed": seed, "c2st": c2st})
        variant = {"table": table, "switch": "calibration", "seed": 0, "c2st": 0.6 + loss}
        runs.append({"wall_seconds": 1.0} | variant)
    return runs


@pytest.mark.parametrize(
    ("worse", "answer"),
    [
        ({"a": 0.05, "b": 0.03}, "stays"),
        ({"a": 0.05, "b": 0.01}, "not decided"),
        ({"a": 0.01, "b": -0.05}, "goes"),
    ],
)
def test_the_rule_of_the_page(worse, answer) -> None:
    runs = _runs(worse)
    assert verdict_of(runs, SWITCHES["calibration"]).answer == answer
    losses = losses_of(runs, SWITCHES["calibration"], MEASURES[0])
    assert [round(loss.value, 3) for loss in losses] == [*worse.values()]


def test_the_page_has_a_line_for_each_mechanism() -> None:
    sizes = dict.fromkeys(("rows", "judged", "scored", "imputed"), 9)
    page = render_page({"runs": _runs({"a": 0.05, "b": 0.03}), "preset": "default"} | sizes)
    heads = Counter(line.split("|")[1].strip() for line in page.splitlines() if "|" in line)
    assert all(heads[switch.name] == 1 for switch in SWITCHES.values())
