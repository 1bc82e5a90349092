"""What a fit shows while it runs, and what it says of itself."""

from __future__ import annotations

import html
import logging
import sys
from contextlib import suppress
from typing import Any

import pandas as pd
import pytest

from gcvae import Synthesizer
from gcvae.training.progress import Progress, reported

TABLE = pd.DataFrame({"size": [2.5, 3.1, 2.7, 4.0] * 9, "<hue>": ["crimson", "azure"] * 18})


def fit(table: pd.DataFrame, **choices: Any) -> Synthesizer:
    """A fit of a few steps."""
    return Synthesizer.fit(
        table, preset="gcvae", settings={"max_steps": 4}, device="cpu", **choices
    )


def test_a_bar_is_shown_where_it_is_asked_for_and_ends_full(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fit(TABLE, progress=True)
    out, shown = capsys.readouterr()
    assert out == ""
    last = shown.rstrip().rpartition("\r")[2]
    assert "100 %" in last
    assert "nats per row" in last
    assert shown.endswith("\n")


@pytest.mark.parametrize(
    ("progress", "is_terminal", "is_shown"),
    [(None, True, True), (None, False, False), (False, True, False), (True, False, True)],
)
def test_without_a_choice_terminals_have_a_bar(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    progress: bool | None,
    is_terminal: bool,
    is_shown: bool,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    with reported(progress) as report:
        assert (report is not None) == is_shown
        if report is not None:
            report(Progress("training", 0.25, 1, 4, bound_held_out=-3.0))
    assert ("training  25 %" in (shown := capsys.readouterr().err)) == is_shown
    assert ("held out -3.00 nats per row" in shown) == is_shown


def test_a_fit_that_is_stopped_leaves_its_bar_where_it_was(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with suppress(RuntimeError), reported(True) as report:
        assert report is not None
        report(Progress("training", 0.5, 1, 4))
        raise RuntimeError
    assert "training  50 %" in capsys.readouterr().err


def test_a_callback_of_ones_own_is_called_as_it_is() -> None:
    seen: list[Progress] = []
    fit(TABLE, progress=seen.append)
    assert [seen[0].fraction, seen[-1].fraction] == [0.0, 1.0]


def test_a_fit_logs_what_it_did_and_no_cell(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="gcvae"):
        fit(TABLE)
    told = [record.getMessage() for record in caplog.records]
    assert [text.split()[0] for text in told] == ["training", "trained", "fitted"]
    assert "36 rows, 2 columns" in told[0]
    assert not any(word in text for word in ("crimson", "azure", "hue") for text in told)


def test_a_notebook_shows_a_model_at_a_glance_and_its_names_as_text() -> None:
    fitted = fit(TABLE)
    assert "notes on the table: 1" in fitted._repr_html_()  # they name cells: files have none
    model = Synthesizer.from_bytes(fitted.to_bytes())
    page = model._repr_html_()
    for name, fact in (
        ("preset ", "gcvae"),
        ("", "2 columns (2 modelled)"),
        ("", "trained on 36 rows"),
    ):
        assert f">{html.escape(fact)}<" in page
        assert name + fact in repr(model)
