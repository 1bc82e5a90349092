"""How long the suite looks: `make test` briefly, `make test-all` at length.

`GCVAE_TIMES_EXAMPLES` is how many times as many generated tables are tried; where it is not set,
the suite is brief: the same few tables at each run, three of the six presets, one of each kind of
server, one of each kind of signal.
"""

from __future__ import annotations

import os
from typing import TypeVar

from hypothesis import HealthCheck, Phase, settings

from gcvae.training.settings import PRESETS

Case = TypeVar("Case")

TIMES = int(os.environ.get("GCVAE_TIMES_EXAMPLES", "0"))
"""How many times as many generated cases as usual are tried; 0 for a brief run."""
AT_LENGTH = TIMES > 0
PRESETS_TRIED = sorted(PRESETS) if AT_LENGTH else ["default", "paper-gcvae", "paper-vae"]
"""One preset with an autoregressive decoder, one with a copula, one of the paper's."""


def tries(n: int) -> settings:
    """Of so many generated cases, a sixth of them in a brief run.

    A case that fails is shown as it is: to make it smaller takes minutes.
    """
    return settings(
        max_examples=n * TIMES or max(1, n // 6),
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def first_of(*cases: Case) -> list[Case]:
    """The cases that a test is tried on: all of them at length, the first alone in a brief run."""
    return list(cases) if AT_LENGTH else list(cases[:1])
