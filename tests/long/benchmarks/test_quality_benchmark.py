"""The benchmark of quality: one command, a short fit, a page; and the two baselines' laws."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm

from benchmarks.quality.cell_marginals import fit_marginal
from benchmarks.quality.independent import IndependentColumns
from benchmarks.quality.models import OTHERS, absent_package
from benchmarks.quality.page import render_page
from benchmarks.quality.plain_copula import PlainGaussianCopula
from benchmarks.quality.results import Results
from benchmarks.quality.tables import NoTableError, load_table
from gcvae import infer_schema, parse_table
from gcvae.cells.values import format_table
from tests.wordings import refuses

ROOT = Path(__file__).parents[3]
QUICK = ("--set", "max_steps=60", "--set", "evaluate_every_steps=30", "--seeds", "1",
         "--bootstraps", "2", "--speed-rows", "0", "--score-rows", "20")  # fmt: skip


def mixed_table(n: int = 300) -> pd.DataFrame:
    """Numbers, whole numbers, levels and blanks, as text cells."""
    random = np.random.default_rng(0)
    height = random.normal(170.0, 10.0, n).round(1)
    frame = pd.DataFrame(
        {
            "height": height,
            "age": random.integers(18, 90, n),
            "club": random.choice(["red", "blue", ""], n),
            "tall": np.where(height + random.normal(0, 3, n) > 170.0, "yes", "no"),
        }
    )
    return frame.astype(str)


def run_benchmark(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, with its results and its page in the folder."""
    command = [sys.executable, "-m", "benchmarks.quality", *arguments]
    command += ["-o", str(folder / "results.json"), "--page", str(folder / "quality.md")]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("benchmark")
    mixed_table().to_csv(made / "mixed.csv", index=False)
    return made


@pytest.fixture(scope="module")
def done(folder: Path) -> subprocess.CompletedProcess[str]:
    table = f"{folder / 'mixed.csv'}:tall"
    return run_benchmark(folder, "--tables", table, "--models", "paper-gcvae,plain-copula", *QUICK)


def test_one_command_measures_models_and_writes_results_and_a_page(
    folder: Path, done: subprocess.CompletedProcess[str]
) -> None:
    assert done.returncode == 0, done.stderr
    results = json.loads((folder / "results.json").read_text())
    assert {run["model"] for run in results["runs"]} == {"paper-gcvae", "plain-copula"}
    for run in results["runs"]:
        assert 0 < run["shape"] < 1
        assert 0 < run["c2st"] <= 1
        assert run["utility"]["measure"] == "auc"
        assert 0 <= run["privacy"]["dcr_share"] <= 1
        assert run["cost"]["fit"]["cpu_seconds"] > 0
        assert run["cost"]["peak_bytes"] > 50e6
        assert np.isfinite(run["cost"]["nats_per_row"])
    assert results["tables"]["mixed"]["floors"]["two_way_tv"]["value"] > 0
    page = (folder / "quality.md").read_text()
    assert "## mixed" in page
    assert '|paper-gcvae {"max_steps": 60' in page
    assert "Not measured: independent, mostlyai" in page


def test_runs_that_are_done_are_not_done_again(
    folder: Path, done: subprocess.CompletedProcess[str]
) -> None:
    before = (folder / "results.json").read_text()
    table = f"{folder / 'mixed.csv'}:tall"
    again = run_benchmark(folder, "--tables", table, "--models", "paper-gcvae", *QUICK)
    assert again.returncode == 0
    assert "seed 0" not in again.stdout
    assert (folder / "results.json").read_text() == before


def test_a_run_that_fails_is_said_and_does_not_stop_the_others(tmp_path: Path) -> None:
    mixed_table(60).to_csv(tmp_path / "mixed.csv", index=False)
    done = run_benchmark(
        tmp_path, "--tables", str(tmp_path / "mixed.csv"), "--models", "paper-gcvae,independent",
        "--set", "no_such_setting=1", "--seeds", "1", "--bootstraps", "1",
        "--speed-rows", "0", "--without-privacy",
    )  # fmt: skip
    assert done.returncode == 1
    assert "failed: " in done.stdout
    assert "no_such_setting" in (tmp_path / "quality.md").read_text()
    [good] = [run for run in json.loads((tmp_path / "results.json").read_text())["runs"]
              if "failed" not in run]  # fmt: skip
    assert good["model"] == "independent"
    assert "utility" not in good


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--models", "nonsense"), "unknown model 'nonsense'; there are"),
        (("--tables", "nonsense", "--models", "independent"), "no table 'nonsense'"),
        (("--tables", "auto", "--data", "/nowhere"), "set GCVAE_DATA_DIR"),
    ],
)
def test_wrong_usage_is_one_line(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = run_benchmark(tmp_path, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_peer_that_is_not_installed_is_said_to_be_absent(tmp_path: Path) -> None:
    absent = [name for name in OTHERS if absent_package(name) is not None]
    if not absent:
        pytest.skip("every peer is installed here")
    mixed_table(60).to_csv(tmp_path / "mixed.csv", index=False)
    done = run_benchmark(
        tmp_path, "--tables", str(tmp_path / "mixed.csv"), "--models", absent[0], *QUICK
    )
    assert f"{absent[0]}: cannot run, the package {absent_package(absent[0])}" in done.stdout


def test_dated_results_are_shown_beside_ones_own(
    folder: Path, done: subprocess.CompletedProcess[str]
) -> None:
    own, dated = Results(None), Results.open(folder / "results.json")
    own.merge(dated)
    assert own.runs == dated.runs
    assert render_page(own, "x") == render_page(dated, "x")


def test_results_of_other_measures_are_neither_shown_nor_taken_for_done(
    tmp_path: Path, folder: Path, done: subprocess.CompletedProcess[str]
) -> None:
    document = json.loads((folder / "results.json").read_text())
    for measured in (*document["runs"], *document["tables"].values()):
        measured["measures"] = 0
    (tmp_path / "old.json").write_text(json.dumps(document))
    old = Results.open(tmp_path / "old.json")
    assert (old.runs, old.tables) == ([], {})


def test_the_tables_of_the_benchmark_are_split_as_published(data_dir: Path) -> None:
    sizes = {}
    for name in ("adult", "shoppers", "magic", "auto", "flights", "orders"):
        table = load_table(name, data_dir)
        sizes[name] = len(table.train), len(table.test)
        assert table.target in table.schema
        parse_table(table.test, table.schema)
    assert sizes == {
        "adult": (32_561, 16_281),
        "shoppers": (8_220, 4_110),
        "magic": (12_680, 6_340),
        "auto": (294, 98),
        "flights": (20_000, 10_000),
        "orders": (5_000, 2_500),
    }


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with refuses(NoTableError):
        load_table(str(tmp_path / "missing.csv"), tmp_path)


@pytest.mark.parametrize("name", ["height", "age", "club", "tall"])
def test_the_masses_of_a_marginals_cells_sum_to_one(name: str) -> None:
    frame = mixed_table()
    schema = infer_schema(frame).schema
    marginal = fit_marginal(parse_table(frame, schema), schema[name])
    cells = {
        "height": np.arange(0, 4000) / 10,
        "age": np.arange(-200, 400),
        "club": np.array(["red", "blue", "never seen"], dtype=object),
        "tall": np.array([True, False, "never seen"], dtype=object),
    }
    lower, mass = marginal.intervals(pd.DataFrame({name: cells[name]}))
    assert mass.sum() == pytest.approx(1.0, abs=1e-4)
    if name in ("height", "age"):
        assert np.diff(lower) == pytest.approx(mass[:-1], abs=1e-4)


@pytest.mark.parametrize("name", ["height", "age", "club"])
def test_quantiles_lie_in_the_cell_of_their_uniform_score(name: str) -> None:
    frame = mixed_table()
    schema = infer_schema(frame).schema
    marginal = fit_marginal(parse_table(frame, schema), schema[name])
    u = np.linspace(0.01, 0.99, 99)
    lower, mass = marginal.intervals(pd.DataFrame({name: marginal.quantile(u)}))
    assert np.all(lower - 0.02 <= u)
    assert np.all(u <= lower + mass + 0.02)


def test_the_copulas_box_probability_is_the_normal_integral() -> None:
    rho = 0.6
    frame = pd.DataFrame({"a": ["p", "q"] * 50, "b": ["x", "y"] * 50})
    copula = PlainGaussianCopula(seed=0)
    copula.fit(frame, infer_schema(frame).schema)
    copula._correlation = np.array([[1.0, rho], [rho, 1.0]])
    rows = pd.DataFrame({"a": ["p", "p", "q", "q"] * 200, "b": ["x", "y", "x", "y"] * 200})
    masses = np.exp(copula.log_masses(rows)).reshape(200, 4).mean(axis=0)
    # Two levels of each column share 1 − the unseen level's mass evenly: 50.5 / 101.5 each.
    edge = norm.ppf(50.5 / 101.5)
    both_low = multivariate_normal([0, 0], [[1, rho], [rho, 1]]).cdf([edge, edge])
    assert masses[0] == pytest.approx(both_low, rel=0.01)
    assert masses.sum() == pytest.approx(1.0, abs=0.02)


def test_the_copula_scores_dependent_rows_better_than_independent_columns() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=2_000).round(3)
    frame = pd.DataFrame(
        {"x": x, "y": (x + random.normal(0, 0.3, 2_000)).round(3), "k": np.where(x > 0, "p", "q")}
    ).astype(str)
    schema = infer_schema(frame).schema
    scores = []
    for model in (IndependentColumns(0), PlainGaussianCopula(0)):
        model.fit(frame[:1_500], schema)
        scores.append(model.log_masses(frame[1_500:].reset_index(drop=True)).mean())
    gain = scores[1] - scores[0]
    # Mutual information of x and y, −½ log(1 − r²), r² = 1/1.09, and most of k's log 2.
    assert 1.2 + 0.3 < gain < 1.2 + 0.75


def test_a_narrow_cell_and_a_density_are_the_same_to_the_copula() -> None:
    """Rounding to fewer digits, still far below the spread, only shifts the log mass."""
    random = np.random.default_rng(0)
    x = random.normal(size=1_000)
    table = pd.DataFrame({"x": x, "y": 0.8 * x + 0.6 * random.normal(size=1_000)})
    means = []
    for decimals in (4, 8):  # wide intervals of u, then points
        frame = table.round(decimals).map(lambda cell, d=decimals: f"{cell:.{d}f}")
        model = PlainGaussianCopula(0)
        model.fit(frame, infer_schema(frame).schema)
        means.append(model.log_masses(frame).mean())
    assert means[0] - means[1] == pytest.approx(2 * 4 * np.log(10), abs=0.05)


def test_a_baselines_rows_can_be_written_like_the_tables() -> None:
    frame = mixed_table()
    schema = infer_schema(frame).schema
    for model in (IndependentColumns(0), PlainGaussianCopula(0)):
        model.fit(frame, schema)
        made = model.sample(500, 1)
        written = format_table(parse_table(made, schema), schema)
        assert set(written["club"]) == set(frame["club"])
        assert written["age"].astype(int).between(18, 90).all()
        assert made.equals(model.sample(500, 1))
