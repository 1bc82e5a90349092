"""A shell completes commands and options, once it was told how: `gcvae --install-completion`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("words", "place", "found"),
    [
        ("gcvae sc", 1, {"schema", "score"}),
        ("gcvae keys c", 2, {"create"}),
        ("gcvae train --pre", 2, {"--preset"}),
    ],
)
def test_a_shell_completes_what_is_begun(words: str, place: int, found: set[str]) -> None:
    asked = {"_GCVAE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place)}
    done = subprocess.run(
        [sys.executable, "-m", "gcvae_cli"],
        env=os.environ | asked, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert set(done.stdout.split()) == found
