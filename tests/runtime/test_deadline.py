"""A process that does not end by itself ends at its limit."""

from __future__ import annotations

import subprocess
import sys

ENDLESS = """
import logging, time
from runtime.deadline import end_within
logging.basicConfig(level="INFO")
end_within(SECONDS)
time.sleep(PAUSE)
"""


def test_what_does_not_end_by_itself_is_ended_and_says_so() -> None:
    script = ENDLESS.replace("SECONDS", "0.1").replace("PAUSE", "60")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert "still running 0.1 s after it was asked to stop" in done.stderr


def test_what_ends_by_itself_does_not_wait_for_the_limit() -> None:
    script = ENDLESS.replace("SECONDS", "3600").replace("PAUSE", "0")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
