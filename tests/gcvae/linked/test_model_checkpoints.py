"""Interrupted fits of databases, which continue from their checkpoints."""

from __future__ import annotations

from typing import Any

import pytest

from gcvae import DatabaseSynthesizer
from gcvae.artifact.file import unpack_tensors
from gcvae.artifact.versions import DATABASE_FORMAT
from tests.gcvae.linked.shop import shop
from tests.lengths import AT_LENGTH


class InterruptedFitError(Exception):
    """Stands for the end of a process."""


class Kept:
    """A store in memory, whose process ends after so many checkpoints."""

    def __init__(self, data: bytes | None = None, most: int = 1_000) -> None:
        self.interval_seconds, self.data, self.most = 0.0, data, most
        self.reports: list[bool] = []

    def before_private_queries(self) -> None:
        raise AssertionError("no table is private")

    def load(self) -> bytes | None:
        return self.data

    def restored(self, *, is_continued: bool) -> None:
        self.reports.append(is_continued)

    def save(self, data: bytes) -> None:
        self.data, self.most = data, self.most - 1
        if not self.most:
            raise InterruptedFitError


def fitted(store: Kept | None, told: dict[str, float], **more: Any) -> Any:
    """The content of the model file of a small shop, without the seconds that its fit took; `told`
    gets the progress of its tables."""
    how: dict[str, Any] = {
        "preset": "fast",
        "settings": {"max_steps": 4, "evaluate_every_steps": 2},
    }
    model = DatabaseSynthesizer.fit(
        shop(16), **(how | more), progress=told.__setitem__, checkpoints=store
    )
    return content(model.to_bytes())


def content(data: bytes) -> Any:
    """The tensors and the manifest of a model file and of the models in it, without seconds."""
    tensors, manifest = unpack_tensors(data)
    manifest.get("training_record", {}).pop("seconds", None)
    found = {}
    for name, tensor in tensors.items():
        raw = tensor.numpy().tobytes()
        is_model = manifest.get("format") == DATABASE_FORMAT and not raw.startswith(b"PAR1")
        found[name] = content(raw) if is_model else raw
    return manifest, found


@pytest.fixture(scope="module")
def undisturbed() -> Any:
    return fitted(None, {})


def test_a_fit_that_ends_at_any_checkpoint_continues_to_the_same_bytes(undisturbed: Any) -> None:
    whole = Kept()
    assert fitted(whole, {}) == undisturbed
    n_saved = 1_000 - whole.most
    assert n_saved > 6  # several of each model
    for most in [n_saved // 2] + [n_saved - 1] * AT_LENGTH:
        store = Kept(most=most)
        with pytest.raises(InterruptedFitError):
            fitted(store, {})
        again, told = Kept(store.data), {}
        assert fitted(again, told) == undisturbed
        assert again.reports == [True]
        assert 1_000 - again.most <= n_saved - most + 4  # the four models
        assert set(told.values()) == {1.0}


@pytest.mark.slow
def test_a_fit_of_other_tables_begins_anew(undisturbed: Any) -> None:
    store = Kept()
    other = fitted(store, {}, seed=1)
    assert other != undisturbed
    again = Kept(store.data)
    assert fitted(again, {}) == undisturbed
    assert again.reports == [False]
