"""Set-up of processes: settings, logs, traces."""

from __future__ import annotations
