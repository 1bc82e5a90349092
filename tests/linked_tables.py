"""A tiny database for tests: users, and the visits of each."""

from __future__ import annotations

import io
import zipfile
from typing import Any

USERS = "id;plan;joined;spend\n" + "".join(
    f"{100 + i};{('free', 'paid')[i % 2]};{1 + i % 28:02}.{1 + i % 12:02}.2024;"
    f"{i * 7 % 90},{i % 10}0\n"
    for i in range(60)
)
VISITS = "visit_id,user_id,started,pages\n" + "".join(
    f"{i},{100 + i // 3},2025-{1 + i % 12:02}-{1 + i % 28:02},{i * 5 % 9}\n" for i in range(180)
)
FILES = {"users.csv": USERS, "visits.csv": VISITS}
TRAINING = {"preset": "fast", "device": "cpu", "max_steps": 5, "seed": 3}
LINK = {"columns": ["user_id"], "table": "users", "references": ["id"]}
KEYS: dict[str, Any] = {
    "tables": {
        "users": {"primary_key": ["id"], "foreign_keys": []},
        "visits": {"primary_key": ["visit_id"], "foreign_keys": [LINK], "order": "started"},
    }
}


def zipped(files: dict[str, Any] | None = None) -> bytes:
    """A ZIP file of the database's files, or of others."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (FILES if files is None else files).items():
            archive.writestr(name, content)
    return buffer.getvalue()


def unzipped(content: bytes) -> dict[str, bytes]:
    """The files of a ZIP file, all of them whole."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}
