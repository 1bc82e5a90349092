"""The policy of the guide names what stands in its pages, and follows them when they change."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path

import pytest

from service.site import pages
from tests.running_service import running, settings_in


def digest(text: str) -> str:
    """A script's or a style's name in a policy."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def build(folder: Path, script: str, built_at: int) -> None:
    """A site of one page, its search written last."""
    (folder / "search").mkdir(exist_ok=True, parents=True)
    page = f'<p style="color: red">x</p><script>{script}</script><script src="a.js"></script>'
    (folder / "index.html").write_text(page)
    (folder / "search" / "search_index.json").write_text("{}")
    os.utime(folder / "search" / "search_index.json", (built_at, built_at))


def test_only_what_stands_in_the_pages_of_now_may_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "guide"
    monkeypatch.setattr(pages, "GUIDE", site)
    with running(settings_in(tmp_path)) as service:
        for built_at, (script, other) in enumerate([("one()", "two()"), ("two()", "one()")]):
            assert ('href="/guide/"' in service.http.get("/").text) is (built_at > 0)
            build(site, script, built_at)
            policy = service.http.get("/guide/").headers["Content-Security-Policy"]
            assert f"'sha256-{digest(script)}'" in policy
            assert f"'sha256-{digest('color: red')}'" in policy
            assert digest(other) not in policy
            assert "unsafe-inline" not in policy
        (site / "search" / "search_index.json").unlink()
        assert service.http.get("/guide/").status_code == 404
