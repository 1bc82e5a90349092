"""Progress of a fit: one fraction that never falls, and the progress bar.

Each phase has a fixed range of the fraction. The remaining time is estimated from the time so far:

    seconds left = elapsed · (1 - fraction) / fraction
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from gcvae.progress import Report

_PRIVATE = {"counting": (0.0, 0.02), "estimating": (0.02, 0.4)}
"""Fractions of the fit at which the phases of differential privacy, the first ones, begin and
end."""
_RANGES = {
    "preparing": (0.0, 0.08),
    "training": (0.08, 0.85),
    "prior": (0.85, 0.88),
    "calibration": (0.88, 0.93),
    "acceptance": (0.93, 0.95),
    "scores": (0.95, 0.99),
    "map": (0.99, 0.999),
}
"""Fractions at which preparation, training and the steps after training begin and end, relative to
the rest of the fit after the private phases. In the fits described in `gcvae.training.costs`,
preparation took 2 to 10 % of the time, and training 65 to 85 %."""
_LINE = "{desc} {percentage:3.0f} %|{bar:24}| {elapsed}<{remaining}{postfix}"


@dataclass(frozen=True)
class Progress:
    """Report on the progress of a fit. Attributes that are not known yet are None.

    Attributes:
        phase: `preparing`, `training` or `finishing`; under differential privacy `counting` and
            `estimating` come first.
        fraction: Share of the fit that is done. It never falls, and is 1 only at the end.
        epoch: Number of passes over the training rows so far.
        epochs: Maximum number of passes; training may stop earlier.
        bound_train: Mean evidence lower bound of training rows, nats per row; higher is better.
        bound_held_out: The same for held-out rows, which only determine when training stops.
        rows_per_second: Speed of training.
        seconds_left: Estimated remaining seconds of the whole fit.
    """

    phase: str
    fraction: float
    epoch: int = 0
    epochs: int = 0
    bound_train: float | None = None
    bound_held_out: float | None = None
    rows_per_second: float | None = None
    seconds_left: float | None = None


Callback = Callable[[Progress], None]


class FitProgress:
    """Tracks the progress of one fit and reports it to a callback.

    An exception that the callback raises ends the fit.
    """

    def __init__(self, callback: Callback | None = None) -> None:
        """Starts the clock and reports the fraction 0; without a callback, nothing is reported."""
        self._callback, self._begun_at = callback, time.monotonic()
        self._start = self._skipped = 0.0
        self._last = Progress("preparing", 0.0)
        self._report(self._last, 0.0)

    @property
    def seconds(self) -> float:
        """Seconds since the fit began."""
        return time.monotonic() - self._begun_at

    def private(self, phase: str, share: float) -> None:
        """Reports the finished share of a phase of differential privacy, `counting` or
        `estimating`."""
        start, self._start = _PRIVATE[phase]
        self._report(replace(self._last, phase=phase), start + (self._start - start) * share)

    def preparing(self, share: float) -> None:
        """Reports the finished share of the preparation, from 0 to 1."""
        self._step("preparing", replace(self._last, phase="preparing"), share)

    def training(self, progress: Progress) -> None:
        """Reports the progress of training, whose finished share is `progress.fraction`. The share
        that an interrupted run had finished is left out of the estimate of the remaining time."""
        if self._last.phase != "training":
            start, end = _RANGES["training"]
            self._skipped = (1.0 - self._start) * (end - start) * progress.fraction
        self._step("training", progress, progress.fraction)

    @contextmanager
    def finishing(self, name: str) -> Iterator[Report]:
        """Context manager for one of the steps after training, such as `calibration`. Yields a
        function to call with the finished share of the step, from 0 to 1."""
        known = replace(self._last, phase="finishing", rows_per_second=None)

        def report(share: float) -> None:
            self._step(name, known, share)

        report(0.0)
        yield report
        report(1.0)

    def end(self) -> None:
        """Reports that the fit is complete."""
        self._report(self._last, 1.0)

    def _step(self, name: str, progress: Progress, share: float) -> None:
        start, end = _RANGES[name]
        fraction = self._start + (1.0 - self._start) * (start + (end - start) * share)
        self._report(progress, fraction)

    def _report(self, progress: Progress, fraction: float) -> None:
        fraction = max(fraction, self._last.fraction)
        done = fraction - self._skipped
        left = self.seconds * (1.0 - fraction) / done if done > 0.0 else None
        self._last = replace(progress, fraction=fraction, seconds_left=left)
        if self._callback is not None:
            self._callback(self._last)


@contextmanager
def reported(progress: Callback | bool | None) -> Iterator[Callback | None]:
    """Context manager that yields the callback for the progress of a fit, or None for no reports.

    Args:
        progress: A callback; True shows a progress bar on standard error, False shows none, None
            shows one if standard error is a terminal or the code runs in a notebook.
    """
    if progress is None:
        progress = sys.stderr.isatty() or _is_notebook()
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress:
        yield None
        return
    from tqdm import tqdm

    with tqdm(total=1.0, bar_format=_LINE) as bar:

        def show(report: Progress) -> None:
            bound = report.bound_held_out
            note = "" if bound is None else f"held out {bound:.2f} nats per row"
            bar.set_description_str(report.phase, refresh=False)
            bar.set_postfix_str(note, refresh=False)
            bar.n = report.fraction
            bar.refresh()

        yield show


def _is_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")
