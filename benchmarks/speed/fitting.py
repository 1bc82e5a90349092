"""Fits of Adult."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.quality.tables import load_table
from benchmarks.speed.measures import Measure, Options, cpu_seconds_of
from benchmarks.speed.sampling import PRESETS
from gcvae import Synthesizer


def measure(options: Options) -> Iterator[Measure]:
    """CPU seconds of a whole fit, inference of the schema and the map of the data included."""
    table = load_table("adult", options.data).train
    for preset in PRESETS:
        path = options.scratch / f"adult-{preset}.gcvae"

        def fit(preset: str = preset) -> Synthesizer:
            return Synthesizer.fit(
                table, preset=preset, settings=options.settings, seed=0, device="cpu"
            )

        fitted: list[Synthesizer] = []
        seconds = cpu_seconds_of(lambda: fitted.append(fit()))  # noqa: B023
        fitted[0].save(path)
        yield Measure(f"fit {preset}", "gcvae", "s", (seconds,))
