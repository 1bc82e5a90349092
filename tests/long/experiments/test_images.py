"""Frey faces and MNIST in their short form, on images of a few pixels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import frey_faces, mnist
from experiments.budgets import BUDGETS
from experiments.images import SORTS, Images, Pixels, at, draw, posterior_means, windows_on

LOOK = replace(
    BUDGETS["look"], frey_steps=10, mnist_steps=5, drawn_rows=200, scored_images=5, image_draws=5
)
NETWORK: dict[str, object] = {
    "d_latent": 2, "d_hidden": 10, "max_steps": 300, "learning_rate": 0.02
}  # fmt: skip


def bars(n: int, seed: int) -> Pixels:
    """Images of 5 × 4 with a bright bar that is anywhere between top and bottom."""
    generator = np.random.default_rng(seed)
    rows = np.arange(5)[None, :, None]
    images = np.exp(-np.square(rows - generator.uniform(0.0, 4.0, (n, 1, 1)))) * np.ones((1, 1, 4))
    images = images + 0.05 * generator.normal(size=images.shape)
    found: Pixels = images.clip(0.0, 1.0).reshape(n, -1).astype(np.float32)
    return found


@pytest.fixture(scope="module")
def images() -> Images:
    labels = np.arange(220) % 10
    return Images(bars(220, 0), bars(20, 1), n_validation=20, height=5, labels=labels)


def test_faces_have_the_papers_sizes_and_digits_the_sets(data_dir: Path) -> None:
    faces = frey_faces.read(data_dir)
    assert (len(faces.known) - faces.n_validation, faces.n_validation) == frey_faces.SIZES[:2]
    assert faces.test.shape == (frey_faces.SIZES[2], 560)
    digits = mnist.read(data_dir, 600)
    assert [len(part) for part in digits.parts(0)] == [500, 100]
    assert digits.test.shape == (10_000, 784)
    for found in (faces, digits):
        assert (found.known.min() >= 0.0, found.known.max() <= 1.0) == (True, True)


@pytest.mark.parametrize("preset", ["paper-vae", "paper-vae-roc"])
def test_sorts_of_drawn_images_differ_by_noise_and_direction(images: Images, preset: str) -> None:
    fitted = images.fit(preset, NETWORK, seed=0)
    drawn = draw(fitted, 4_000, seed=1)
    x, tangent, mean = (drawn.of_sort(sort) for sort in SORTS)
    omega = np.broadcast_to(drawn.omega, drawn.mean.shape)
    inside = (np.abs(tangent - 0.5) < 0.1) & (omega < 0.1**2)  # far from where levels are cut
    noise = np.square(x - tangent)[inside] / omega[inside]
    assert len(noise) > 1_000
    assert noise.mean() == pytest.approx(1.0, abs=0.1)
    assert (np.abs(tangent - mean).max() > 0.0) == (preset == "paper-vae-roc")
    again = at(fitted, posterior_means(fitted, images, images.test))
    error = np.square(again.mean - images.test).mean()
    assert error < np.square(images.test - images.known.mean(0)).mean()


def test_windows_on_the_images_own_kind_beat_those_on_noise(images: Images) -> None:
    noise = np.random.default_rng(0).uniform(size=(200, 20)).astype(np.float32)
    own = windows_on(images.known[:200], images.known[200:], images.test)
    other = windows_on(noise, images.known[200:], images.test)
    assert own["nats"] > other["nats"] + 3.0
    assert own["sigma"] < other["sigma"]


def test_a_run_on_faces_has_a_line_for_each_model_and_its_tangents(
    images: Images, tmp_path: Path
) -> None:
    lines = list(frey_faces.run_on(images, replace(LOOK, longer_faces=(2.0,)), tmp_path))
    models = [*frey_faces.MODELS]
    assert [line["model"] for line in lines] == [models[0], "VAE-ROC", *models[1:]]
    assert lines[2]["steps"] > lines[1]["steps"]
    sorts = [tuple(line["windows"]) for line in lines]
    assert sorts == [("x", "μ"), SORTS, SORTS, SORTS, SORTS]
    found = {path.name for path in tmp_path.iterdir()}
    tangents = {frey_faces.picture_of(name) for name in frey_faces.MODELS if name != "VAE"}
    assert found == {"frey-curve.png", *tangents}
    assert len(tangents) == len(frey_faces.MODELS) - 1


def test_a_run_on_digits_begins_with_real_images_and_leaves_its_pictures(
    images: Images, tmp_path: Path
) -> None:
    lines = list(mnist.run_on(images, replace(LOOK, image_parts=(0.4, 1.0)), tmp_path))
    models = [line["model"] for line in lines]
    others = [name for name in mnist.MODELS if name not in mnist.PAIR]
    assert sorted(models) == sorted(["training images", *mnist.PAIR, *mnist.PAIR, *others])
    assert models[1:3] == ["VAE-ROC", "VAE-ROC"]
    assert lines[2]["steps"] > lines[1]["steps"]
    assert lines[0]["windows"]["x"]["nats"] > lines[1]["windows"]["x"]["nats"]
    assert (tmp_path / "mnist-sheets.png").stat().st_size < 150_000
    names = ("curve", "sheets", "codes", "tangents-rr", "tangents-l1-100", "tangents-l1-1000")
    assert {path.name for path in tmp_path.iterdir()} == {f"mnist-{name}.png" for name in names}
