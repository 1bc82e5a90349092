"""Work that nobody waits for stands behind what answers requests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_TELL = """
import os
from runtime.priority import lower_priority

lower_priority()
lower_priority()
print(os.getpriority(os.PRIO_PROCESS, 0), os.getsid(0) == os.getpid())
try:
    print(open("/proc/self/autogroup").read().split()[-1])
except FileNotFoundError:
    print("none")
"""


def test_a_process_that_steps_back_is_nicer_in_a_session_of_its_own() -> None:
    told = subprocess.check_output([sys.executable, "-c", _TELL], text=True).split()
    assert told[:2] == [str(min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)), "True"]
    if not Path("/proc/self/autogroup").exists():
        pytest.skip("this system has no groups of sessions")
    assert told[2] == "5"
