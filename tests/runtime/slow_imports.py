"""Imports that take their time in a fork server, as torch's do on a busy machine."""

import sys
import time

SECONDS = 10.0

if __name__ in sys.orig_argv:
    time.sleep(SECONDS)
