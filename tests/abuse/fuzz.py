"""The long campaign of inputs: `python -m tests.abuse.fuzz --inputs 100000` (`make test-fuzz`)."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.abuse.batches import read_batch
from tests.abuse.findings import Findings
from tests.abuse.inputs import SUBJECTS, model

_BATCH = 500
_MEBIBYTE = 1 << 20


def main() -> int:
    """Read hostile inputs, and print what came of it as JSON; 1 where something is wrong."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--inputs", type=int, default=100_000)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--subjects", nargs="*", choices=[*SUBJECTS], default=[*SUBJECTS])
    asked.add_argument("--kept", type=Path, default=Path("fuzz-kept"), help="what found something")
    chosen = asked.parse_args()
    begun, findings, peaks = time.monotonic(), Findings(), dict.fromkeys(chosen.subjects, 0)
    model()  # once, before processes are forked
    for name in chosen.subjects:
        wanted, done = round(chosen.inputs * SUBJECTS[name].share), 0
        for number in range(chosen.seed, chosen.seed + 2 * (wanted // _BATCH + 1)):
            n_inputs = min(_BATCH, wanted - done)
            peak = read_batch(name, number, n_inputs, chosen.kept, findings)
            peaks[name] = max(peaks[name], peak)
            done = findings.outcomes[name].total() if name in findings.outcomes else 0
            if done >= wanted:
                break
        print(name, done, f"{time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    seconds = round(time.monotonic() - begun)
    peaks_mib = {name: peak // _MEBIBYTE for name, peak in peaks.items()}
    print(findings.report(seed=chosen.seed, seconds=seconds, peak_mib=peaks_mib))
    return 1 if findings.failures else 0


if __name__ == "__main__":
    sys.exit(main())
