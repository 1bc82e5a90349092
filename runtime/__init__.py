"""The process: what each of ours is set up with – settings, logs, traces."""

from __future__ import annotations
