"""The synthesizer end to end, on small tables and on the real ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from gcvae import Synthesizer, read_table
from gcvae.cells.values import format_table
from gcvae.errors import ArtifactError, InputError, SettingError
from gcvae.sampling.samplers import SAMPLE_BLOCK_ROWS
from tests.fitted import models
from tests.fitted.models import mixed_frame
from tests.lengths import PRESETS_TRIED, first_of
from tests.wordings import refuses

QUICK = {"max_steps": 20, "evaluate_every_steps": 10, "rare_level_rows": 1}
SHORT: dict[str, Any] = {"preset": "paper-vae", "settings": {"max_steps": 2}}


@pytest.fixture(scope="module")
def fitted() -> Synthesizer:
    return models.fitted()


def test_a_sample_has_the_tables_columns_kinds_and_levels(fitted: Synthesizer) -> None:
    real, synthetic = mixed_frame(), fitted.sample(500, seed=1)
    assert list(synthetic.columns) == list(real.columns)
    assert len(synthetic) == 500
    assert set(synthetic["group"]) <= {"tall", "short"}
    assert set(synthetic["unit"]) == {"cm"}
    weights = synthetic["weight"].dropna().astype(float)
    assert 0 < len(weights) < 500
    assert (weights == weights.round()).all()
    assert (synthetic["height"].round(1) == synthetic["height"]).all()
    assert synthetic["day"].between(real["day"].min(), real["day"].max()).all()


def test_identifiers_are_fresh_and_distinct(fitted: Synthesizer) -> None:
    keys = fitted.sample(SAMPLE_BLOCK_ROWS + 10)["key"]
    assert keys.is_unique
    assert not set(keys) & set(mixed_frame()["key"])


def test_models_of_two_tables_draw_other_keys_under_one_seed_and_each_its_own_again() -> None:
    frame = mixed_frame()
    other = frame.assign(height=frame["height"] + 0.1)
    one, two = (Synthesizer.fit(table, **SHORT) for table in (frame, other))
    keys = set(one.sample(50, seed=3)["key"])
    assert len(keys & set(two.sample(50, seed=3)["key"])) < 25
    again = Synthesizer.fit(frame, **SHORT)
    for synthesizer in (again, Synthesizer.from_bytes(one.to_bytes())):
        assert set(synthesizer.sample(50, seed=3)["key"]) == keys


def test_the_same_seed_gives_the_same_rows_whole_or_in_blocks(fitted: Synthesizer) -> None:
    n = SAMPLE_BLOCK_ROWS + 100
    whole = fitted.sample(n, seed=5)
    pd.testing.assert_frame_equal(whole, fitted.sample(n, seed=5))
    pd.testing.assert_frame_equal(whole.head(50), fitted.sample(50, seed=5))
    assert not whole.head(50).equals(fitted.sample(50, seed=6))


@pytest.mark.parametrize("conditions", [{}, {"given": {"group": "tall"}}], ids=["all", "given"])
def test_without_a_seed_rows_are_others_at_each_call_and_name_the_seed_that_gives_them_again(
    fitted: Synthesizer, conditions: dict[str, object], tmp_path: Path
) -> None:
    one, other = (fitted.sample(50, **conditions) for _ in range(2))
    assert not one["height"].equals(other["height"])
    again = fitted.sample(50, seed=one.attrs["seed"], **conditions)
    pd.testing.assert_frame_equal(one, again)
    blocks = list(fitted.sample_blocks(50, one.attrs["seed"], **conditions))
    assert [block.attrs["seed"] for block in blocks] == [one.attrs["seed"]]
    one.to_parquet(tmp_path / "rows.parquet")
    assert pd.read_parquet(tmp_path / "rows.parquet").attrs == one.attrs
    assert fitted.sampler().seed != fitted.sampler().seed


@pytest.mark.parametrize(
    ("conditions", "figures"),
    [
        ({}, set()),
        ({"given": None}, set()),
        ({"given": {"group": "tall"}}, {"probability", "effective_sample_size"}),
        ({"given": {"height": {"min": 170}}}, {"probability", "effective_sample_size"}),
        (
            {"distribution": {"group": {"tall": 0.5, "short": 0.5}}},
            {"probability", "effective_sample_size"},
        ),
        ({"given_rows": pd.DataFrame({"group": ["tall"] * 50})}, {"effective_particles"}),
    ],
    ids=["none", "null", "given", "range", "distribution", "rows"],
)
def test_a_sample_says_what_is_known_of_its_condition_also_after_save_and_load(
    fitted: Synthesizer, conditions: dict[str, Any], figures: set[str]
) -> None:
    drawn = fitted.sample(50, seed=3, **conditions)
    assert set(drawn.attrs) == {"seed"} | figures
    if figures:
        summary = fitted.sampler(3, **conditions).summary(50)
        assert drawn.attrs == {"seed": 3, **summary}
    loaded = Synthesizer.from_bytes(fitted.to_bytes())
    assert loaded.sample(50, seed=3, **conditions).attrs == drawn.attrs


def test_no_rows_are_an_empty_table_with_all_columns(fitted: Synthesizer) -> None:
    empty = fitted.sample(0)
    assert (len(empty), list(empty.columns)) == (0, list(mixed_frame().columns))


def test_the_same_seed_gives_the_same_fit() -> None:
    one, again = (models.fit("default", max_steps=20).model.state_dict() for _ in range(2))
    for name, tensor in one.items():
        assert torch.equal(tensor, again[name])


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("preset", PRESETS_TRIED)
def test_a_saved_model_samples_scores_and_maps_alike(preset: str, tmp_path: Path) -> None:
    fitted = models.fitted(preset)
    fitted.save(tmp_path / "m.gcvae")
    loaded = Synthesizer.load(tmp_path / "m.gcvae")
    assert loaded.to_bytes() == fitted.to_bytes() == models.path_of(preset).read_bytes()
    assert loaded.preset == preset
    pd.testing.assert_frame_equal(fitted.sample(300, seed=2), loaded.sample(300, seed=2))
    rows = mixed_frame(40)
    pd.testing.assert_frame_equal(
        fitted.log_likelihood(rows, draws=20), loaded.log_likelihood(rows, draws=20)
    )
    for kind in ("expected", "total", "data"):
        assert fitted.dependencies(kind).to_json() == loaded.dependencies(kind).to_json()


@pytest.mark.parametrize("preset", ["paper-vae", "paper-vae-roc"])
def test_a_model_of_the_unit_interval_is_saved_with_its_means_within_it(
    preset: str, tmp_path: Path
) -> None:
    greys = np.random.default_rng(0).beta(0.3, 0.9, (60, 5))
    frame = pd.DataFrame(greys, columns=list("abcde"))
    columns = [{"name": n, "kind": "continuous", "minimum": 0, "maximum": 1} for n in frame]
    fitted = Synthesizer.fit(
        frame, schema={"columns": columns}, preset=preset, settings=QUICK | {"encoding": "unit"}
    )
    fitted.save(tmp_path / "m.gcvae")
    loaded = Synthesizer.load(tmp_path / "m.gcvae")
    assert loaded.config.encoding == "unit"
    pd.testing.assert_frame_equal(fitted.sample(300, seed=2), loaded.sample(300, seed=2))
    scores = loaded.log_likelihood(frame, draws=20)
    pd.testing.assert_frame_equal(fitted.log_likelihood(frame, draws=20), scores)
    with torch.no_grad():
        means = loaded.model.conditional(
            50.0 * torch.randn(200, loaded.config.d_latent)
        ).marginal_parameters
    mean = means.numbers.components[1]
    assert mean.min() >= 0.0
    assert mean.max() <= 1.0


def test_scores_are_finite_ordered_and_ranked(fitted: Synthesizer) -> None:
    real = mixed_frame()
    scores = fitted.log_likelihood(real, draws=30)
    assert list(scores.columns)[:3] == ["log_likelihood", "standard_error", "percentile"]
    assert np.isfinite(scores.drop(columns="odd_cell").to_numpy()).all()
    assert scores["percentile"].between(0.0, 100.0).all()
    strange = real.head(5).assign(height=260.0)
    assert fitted.log_likelihood(strange)["log_likelihood"].max() < scores["log_likelihood"].min()


def test_a_score_does_not_depend_on_the_unit_but_for_its_jacobian() -> None:
    """The same table in metres: every height's density is 100 times as large."""
    centimetres = mixed_frame()[["height", "group"]]
    metres = centimetres.assign(height=(centimetres["height"] / 100.0).round(3))
    in_centimetres, in_metres = (
        Synthesizer.fit(frame, settings=QUICK).log_likelihood(frame, draws=20)["log_likelihood"]
        for frame in (centimetres, metres)
    )
    difference = in_metres - in_centimetres
    assert difference.to_numpy() == pytest.approx(np.log(100.0), abs=1e-3)


def test_a_blank_is_scored_like_no_knowledge_and_costs_no_density(fitted: Synthesizer) -> None:
    rows = mixed_frame().head(20)
    blank = rows.assign(height=np.nan)
    with_height = fitted.log_likelihood(rows)["log_likelihood"]
    without = fitted.log_likelihood(blank)["log_likelihood"]
    assert np.isfinite(without).all()
    assert (without > with_height).mean() > 0.9


def test_an_unseen_level_scores_minus_infinity_and_is_no_error(fitted: Synthesizer) -> None:
    rows = mixed_frame().head(2).assign(group=["tall", "giant"])
    scores = fitted.log_likelihood(rows)["log_likelihood"]
    assert np.isfinite(scores[0])
    assert scores[1] == -np.inf


def test_maps_are_symmetric_with_ones_on_the_diagonal(fitted: Synthesizer) -> None:
    for kind in ("expected", "total", "data"):
        map_ = fitted.dependencies(kind)
        assert map_.columns == ("height", "weight", "group", "day")
        assert np.array_equal(map_.tau, map_.tau.T)
        assert (np.diag(map_.tau) == 1.0).all()
        assert (np.abs(map_.tau) <= 1.0).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.dependencies("local-ish"),
        lambda s: s.sample(-1),
        lambda s: s.sample("5"),
        lambda s: s.sample(1.5),
        lambda s: s.sample(True),
        lambda s: s.sample(1, seed="x"),
        lambda s: s.impute(mixed_frame().head(5), 1.5),
        lambda s: s.sample(1, seed=2**63),
        lambda s: Synthesizer.fit(mixed_frame(), seed=-1),
        lambda s: s.log_likelihood(mixed_frame().head(5), draws=0),
        lambda s: s.log_likelihood(mixed_frame().head(5).assign(hue="red")),
        lambda s: Synthesizer.fit(mixed_frame(), device="tpu"),
        lambda s: Synthesizer.fit(mixed_frame(), preset="best"),
    ],
)
def test_wrong_arguments_are_named(
    fitted: Synthesizer, call: Callable[[Synthesizer], object]
) -> None:
    with refuses(InputError):
        call(fitted)


@pytest.mark.skipif(torch.cuda.is_available(), reason="asks for CUDA where there is none")
def test_cuda_where_there_is_none_is_an_error_not_a_fallback() -> None:
    with refuses(SettingError):
        Synthesizer.fit(mixed_frame(), device="cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_model_trained_on_a_gpu_is_loaded_on_the_cpu(tmp_path: Path) -> None:
    fitted = Synthesizer.fit(mixed_frame(), settings=QUICK, device="cuda")
    fitted.save(tmp_path / "m.gcvae")
    assert len(Synthesizer.load(tmp_path / "m.gcvae").sample(10)) == 10


def test_a_file_that_is_no_model_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "m.gcvae").write_bytes(b"age,sex\n1,2\n")
    with refuses(ArtifactError):
        Synthesizer.load(tmp_path / "m.gcvae")


def test_the_manifest_holds_no_row_of_the_table(fitted: Synthesizer) -> None:
    """Neither an identifier nor a measured height of the table stands in the file."""
    text = fitted.to_bytes().decode("latin-1")
    heights = mixed_frame()["height"].sort_values().astype(str).tolist()[1:-1]
    assert re.search(r"(?<![\d.])1003(?!\d)", text) is None
    assert sum(f'"{h}"' in text or f",{h}," in text for h in heights) == 0


@pytest.mark.parametrize(
    "name", first_of("auto_mpg_with_missing.csv", "auto_mpg.csv", "spect_train.csv")
)
def test_real_tables_are_learned_sampled_and_scored(name: str, data_dir: Path) -> None:
    real = read_table(data_dir / name)
    fitted = Synthesizer.fit(real, settings=QUICK)
    text = format_table(fitted.sample(len(real)), fitted.schema)
    assert list(text.columns) == list(real.columns)
    assert np.isfinite(fitted.log_likelihood(real.head(50))["log_likelihood"]).all()


@pytest.mark.slow
def test_auto_has_the_known_signs_in_its_total_map(data_dir: Path) -> None:
    settings = {"max_steps": 2000, "learning_rate": 3e-3}
    fitted = Synthesizer.fit(read_table(data_dir / "auto_mpg.csv"), settings=settings)
    map_ = fitted.dependencies("total")
    at = {name: j for j, name in enumerate(map_.columns)}
    assert map_.tau[at["horsepower"], at["weight"]] > 0.4
    assert map_.tau[at["horsepower"], at["mpg"]] < -0.4
    assert map_.tau[at["cylinders"], at["model_year"]] < -0.1
    assert np.abs(map_.tau - fitted.dependencies("data").tau).max() < 0.2


def test_a_copy_that_differs_is_impossible_and_one_that_is_blank_changes_nothing() -> None:
    frame = mixed_frame()[["height", "group", "weight"]]
    frame = frame.assign(size=frame["group"], kilos=frame["weight"])
    fitted = Synthesizer.fit(frame, settings=QUICK)
    assert fitted.codec.copies == {"size": "group", "kilos": "weight"}
    rows = frame.dropna().head(4)
    scores = fitted.log_likelihood(rows)["log_likelihood"]
    for blank in ("group", "size", "kilos", "weight"):
        without = fitted.log_likelihood(rows.assign(**{blank: None}))["log_likelihood"]
        assert without.tolist() == scores.tolist()
    other = rows.assign(size=rows["group"].map({"tall": "short", "short": "tall"}))
    assert (fitted.log_likelihood(other)["log_likelihood"] == -np.inf).all()
