"""Where the time of the suite goes, as a page: `make durations`.

python -m pytest --durations=0 | python -m tests.durations > tests/durations.md
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable

N_SLOWEST = 100
LINE = re.compile(r"\s*([\d.]+)s (?:call|setup|teardown)\s+((\S+?)(?:::.*)?)$")


def read_durations(lines: Iterable[str]) -> Counter[str]:
    """Seconds of each test, its set-up included, from what pytest prints."""
    seconds = Counter[str]()
    for line in lines:
        if (found := LINE.match(line)) is not None:
            seconds[found[2].strip()] += float(found[1])
    return seconds


def folder_of(test: str) -> str:
    """The folder of a test, three levels deep at most."""
    return "/".join(test.split("::")[0].split("/")[:-1][:3])


def render(seconds: Counter[str]) -> str:
    """The page: a table of folders, and the slowest tests."""
    folders, tests = Counter[str](), Counter[str]()
    for test, took in seconds.items():
        folders[folder_of(test)] += took
        tests[folder_of(test)] += 1
    lines = ["| folder | tests | seconds |", "|---|---:|---:|"]
    lines += [f"| `{name}` | {tests[name]} | {took:.1f} |" for name, took in folders.most_common()]
    lines += ["", "| test | seconds |", "|---|---:|"]
    lines += [
        f"| `{test.replace('|', '¦')}` | {took:.1f} |"
        for test, took in seconds.most_common(N_SLOWEST)
    ]
    total = sum(seconds.values())
    return "\n".join([f"{len(seconds)} tests, {total:.0f} seconds.", "", *lines, ""])


if __name__ == "__main__":
    sys.stdout.write(render(read_durations(sys.stdin)))
