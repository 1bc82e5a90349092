"""Draws pictures of image models: sheets of images, and tangent spaces beside the nearest training
images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from scipy.stats import norm

from experiments.images import Drawn, Pixels

CENTRE, LOW, HIGH = "#c0392b", "#1f4e79", "#d4a017"
"""Colours of frames: around μ, and around the training images nearest to the ends of a tangent."""
_TANGENT_STEPS = 7


def draw_sheet(panels: dict[str, Pixels], height: int, columns: int, path: Path) -> None:
    """Draws four sheets of images with their titles, `columns` images in a row; dark pixels have
    high values."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 8.8), layout="constrained")
    for axes, (title, images) in zip(figure.subplots(2, 2).flat, panels.items(), strict=True):
        axes.imshow(sheet(images, height, columns), cmap="gray_r", interpolation="nearest")
        axes.set_title(title, fontsize=9)
        axes.axis("off")
    _save(figure, path)
    _to_greys(path)


def sheet(images: Pixels, height: int, columns: int) -> npt.NDArray[np.float32]:
    """Joins images to one image, row by row. Images that do not fill a row are left out.

    Shape: (n, H W) for n images of H × W pixels -> (rows · H, columns · W).
    """
    n = len(images) // columns * columns
    grid = images[:n].reshape(-1, columns, height, images.shape[1] // height)
    rows, _, _, width = grid.shape
    return grid.swapaxes(1, 2).reshape(rows * height, columns * width)


def draw_tangents(
    at: Drawn, height: int, path: Path, *, near: Pixels | None = None, cmap: str = "gray_r"
) -> None:
    """Draws a row for each z: its direction a, the images μ + t a at quantiles of t ~ N(0, 1), and
    training images.

    Args:
        at: Mean μ and direction a of the decoder at each z.
        height: Number of pixel rows of an image.
        path: Path of the picture.
        near: Images of which the nearest to the first and last image of each row are shown; None
            for none.
        cmap: Colour map of the images.
    """
    from matplotlib.figure import Figure

    t = norm.ppf((np.arange(_TANGENT_STEPS) + 0.5) / _TANGENT_STEPS)
    n, n_near = len(at.mean), 0 if near is None else 2
    figure = Figure(figsize=(0.75 * (_TANGENT_STEPS + 1 + n_near), 0.95 * n + 0.3))
    grid = figure.subplots(n, _TANGENT_STEPS + 1 + n_near, squeeze=False)
    for i, row in enumerate(grid):
        a, along = at.direction[i], at.mean[i] + t[:, None] * at.direction[i]
        reach = float(np.abs(a).max()) or 1.0
        _show(row[0], a, height, cmap="RdBu_r", limits=(-reach, reach))
        for axes, image, step in zip(row[1:], along, t, strict=False):
            frame = CENTRE if abs(step) < 1e-9 else None
            _show(axes, image.clip(0.0, 1.0), height, cmap=cmap, frame=frame)
        ends = () if near is None else zip(row[-2:], along[[0, -1]], (LOW, HIGH), strict=True)
        for axes, image, colour in ends:
            assert near is not None
            nearest = near[int(cdist(image[None], near)[0].argmin())]
            _show(axes, nearest, height, cmap=cmap, frame=colour)
    titles = ["a", *(f"{step:+.1f}" for step in t), *["nearest"] * n_near]
    for axes, title in zip(grid[0], titles, strict=True):
        axes.set_title(title, fontsize=7)
    figure.subplots_adjust(0.01, 0.01, 0.99, 1.0 - 0.3 / (0.95 * n + 0.3), 0.06, 0.06)
    _save(figure, path)


def draw_codes(codes: npt.NDArray[Any], labels: npt.NDArray[np.int64], path: Path) -> None:
    """Draws three-dimensional latent vectors as points coloured by label. Shape: (n, 3)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    axes = figure.add_subplot(projection="3d")
    points = axes.scatter(*codes.T, c=labels, cmap="tab10", s=3, linewidths=0)
    axes.set(xlabel="z₁", ylabel="z₂", zlabel="z₃", box_aspect=(1, 1, 1))
    axes.tick_params(labelsize=6)
    figure.colorbar(points, ax=axes, label="digit", shrink=0.6, ticks=range(10))
    _save(figure, path)


def draw_curve(
    curves: dict[str, list[tuple[int, float]]], levels: dict[str, float], path: Path
) -> None:
    """Draws nats by number of updates for each model, and the paper's figures as horizontal lines.

    Args:
        curves: (Number of updates, nats) of the fits of each model.
        levels: The paper's figures by label.
        path: Path of the picture.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.2), layout="constrained")
    axes = figure.subplots()
    for name, points in curves.items():
        axes.plot(*zip(*points, strict=True), "o-", markersize=3, linewidth=1, label=name)
    for name, level in levels.items():
        axes.axhline(level, color="#888888", linewidth=0.8, linestyle="--")
        axes.annotate(name, (0.01, level), xycoords=("axes fraction", "data"), fontsize=7,
                      ha="left", va="bottom")  # fmt: skip
    axes.set(xlabel="updates", ylabel="nats per test image, Parzen windows", xscale="log")
    axes.minorticks_off()
    steps = sorted({step for points in curves.values() for step, _ in points})
    axes.set_xticks(steps, [f"{step:,}" for step in steps])
    axes.legend(fontsize=7, frameon=False, loc="lower right")
    _save(figure, path)


def _show(
    axes: Any,
    image: Pixels,
    height: int,
    *,
    cmap: str,
    limits: tuple[float, float] = (0.0, 1.0),
    frame: str | None = None,
) -> None:
    axes.imshow(
        image.reshape(height, -1), cmap=cmap, vmin=limits[0], vmax=limits[1],
        interpolation="nearest",
    )  # fmt: skip
    axes.set(xticks=(), yticks=())
    for spine in axes.spines.values():
        spine.set(visible=frame is not None, color=frame, linewidth=2)


def _to_greys(path: Path) -> None:
    """Reduces a grey picture to 16 levels, which takes a third of the bytes without a visible
    difference."""
    from PIL import Image

    with Image.open(path) as picture:
        few = picture.convert("L").quantize(16)
    few.save(path, optimize=True)


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
