"""Change points: found where they are, not found where there are none, kept by a fitted model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae import Synthesizer
from gcvae.artifact.file import pack_tensors, unpack_tensors
from gcvae.errors import ArtifactError
from gcvae.training.change_points import _Segmentation
from tests.lengths import tries


def starts(numbers: np.ndarray, *categories: np.ndarray) -> list[int]:
    order = np.argsort(numbers, kind="stable")
    return list(_Segmentation(numbers[order], [c[order] for c in categories]).starts())


def test_a_threshold_is_found_at_its_row() -> None:
    random = np.random.default_rng(0)
    temperature, other = random.normal(8.0, 9.0, 2_000), random.integers(0, 4, 2_000)
    frost = (temperature < 2.0).astype(int)
    assert starts(temperature, other, frost) == [frost.sum()]


def test_a_category_that_begins_is_found_near_its_beginning() -> None:
    random = np.random.default_rng(1)
    day = random.uniform(0.0, 1_000.0, 2_000)
    category = np.where(
        (day >= 640.0) & (random.random(2_000) < 0.35), 3, random.integers(0, 3, 2_000)
    )
    found = starts(day, category)
    assert len(found) == 1
    assert abs(np.sort(day)[found[0]] - 640.0) < 10.0


def test_places_of_devices_are_found_one_by_one() -> None:
    random = np.random.default_rng(2)
    device = random.integers(0, 20, 2_000)
    latitude = device + 0.01 * random.normal(size=2_000)
    edges = set(np.cumsum(np.bincount(device))[:-1])
    found = set(starts(latitude, device))
    assert edges <= found
    assert len(found - edges) <= 2


@given(st.integers(0, 2**32 - 1), st.integers(200, 6_000))
@tries(12)
def test_a_smooth_dependence_has_no_change_points(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    number = random.normal(size=n)
    slope = random.uniform(0.0, 3.0)
    smooth = (random.random(n) < 1.0 / (1.0 + np.exp(-slope * number))).astype(int)
    bands = np.clip(np.rint(number + random.normal(size=n)), -2, 2).astype(int) + 2
    assert starts(number, smooth, bands, random.integers(0, 9, n)) == []


def weather(n: int, seed: int) -> pd.DataFrame:
    """Rows with a threshold, names in two scripts, and an index of their own."""
    random = np.random.default_rng(seed)
    degrees = random.normal(8.0, 9.0, n).round(3)
    frame = pd.DataFrame(
        {
            "температура": degrees,
            "humidity": (60.0 - 0.5 * degrees + 10.0 * random.normal(size=n)).round(2),
            "霜": np.where(degrees < 2.0, "ja", "nein"),
        }
    )
    return frame.set_index(pd.Index([f"r{i}" for i in range(n)]))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Synthesizer:
    """Without rules, one of which would say the threshold; saved and loaded."""
    path = tmp_path_factory.mktemp("weather") / "model.gcvae"
    fitted = Synthesizer.fit(
        weather(800, 0), schema={"rules": []}, seed=0, settings={"max_steps": 60}
    )
    fitted.save(path)
    loaded = Synthesizer.load(path)
    pd.testing.assert_frame_equal(fitted.sample(50, seed=3), loaded.sample(50, seed=3))
    return loaded


def broken(rows: pd.DataFrame) -> float:
    return float(((rows["температура"] < 2.0) != (rows["霜"] == "ja")).mean())


def test_drawn_rows_keep_a_sharp_threshold(model: Synthesizer) -> None:
    assert broken(model.sample(4_000, seed=1)) <= 0.01


def test_conditions_and_imputations_keep_it(model: Synthesizer) -> None:
    assert broken(model.sample(300, seed=1, given={"霜": "ja"})) <= 0.01
    cold = model.sample(300, seed=1, given={"температура": {"max": 1.0}})
    assert (cold["霜"] == "ja").mean() >= 0.99
    rows = weather(200, 7)[["霜", "humidity"]].assign(температура=np.nan)
    filled = model.impute(rows, seed=2)
    assert broken(filled) <= 0.02
    assert filled.index.equals(rows.index)


def test_a_row_on_the_other_side_is_far_less_likely(model: Synthesizer) -> None:
    rows = weather(100, 5)
    turned = rows.assign(霜=np.where(rows["霜"] == "ja", "nein", "ja"))
    likely, odd = (model.log_likelihood(r)["log_likelihood"] for r in (rows, turned))
    assert np.isfinite(odd).all()
    assert (likely - odd).median() > 3.0


def test_rounding_cells_add_up_to_one(model: Synthesizer) -> None:
    degrees = np.arange(-30.0, 50.0, 0.25)
    rows = pd.DataFrame(
        {
            "температура": np.repeat(degrees, 2),
            "霜": ["ja", "nein"] * len(degrees),
            "humidity": None,
        }
    )
    scores = model.log_likelihood(rows, draws=50)
    density = np.exp(scores["log_likelihood"].to_numpy())
    assert density.sum() * 0.25 == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    "change",
    [
        {"column": "humidity?"},
        {"parent": "температура"},
        {"points": [2.0, 1.0]},
        {"log_ratio": [[0.0, 0.0]]},
    ],
    ids=str,
)
def test_a_file_with_change_points_that_do_not_fit_is_refused(
    model: Synthesizer, change: dict[str, object], tmp_path: Path
) -> None:
    path = tmp_path / "model.gcvae"
    model.save(path)
    tensors, manifest = unpack_tensors(path.read_bytes())
    assert len(manifest["change_points"]) == 1
    manifest["change_points"][0] |= change
    path.write_bytes(pack_tensors(tensors, manifest))
    with pytest.raises(ArtifactError):
        Synthesizer.load(path)
