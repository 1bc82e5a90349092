"""Set-up of processes: settings, logs, traces, and child processes."""

from __future__ import annotations
