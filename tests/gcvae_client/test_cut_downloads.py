"""Connections that are cut in the middle of a download, between client and a real service."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gcvae_client import Client, IncompleteError
from tests.gcvae_client.cutting_proxy import cutting
from tests.running_service import Running, working


def test_a_model_whose_download_is_cut_twice_comes_whole_by_range(
    service: Running, client: Client, model: dict[str, Any], tmp_path: Path
) -> None:
    whole = client.download_model(model, tmp_path / "whole.gcvae").read_bytes()
    third = len(whole) // 3
    with (
        cutting(service.url, "/artifact", [2 * third, third // 2]) as (url, cuts),
        Client(url) as cut,
    ):
        path = cut.download_model(model, tmp_path / "cut.gcvae")
    assert path.read_bytes() == whole
    starts = [re.findall(rb"(?i)\r\nrange: bytes=(\d+)-", head) for head in cuts.requests]
    assert [*map(len, starts)] == [0, 1, 1]
    assert 0 < int(starts[1][0]) <= 2 * third
    assert int(starts[1][0]) < int(starts[2][0]) < len(whole)
    assert all(b"if-range" in head.lower() for head in cuts.requests[1:])
    assert {entry.name for entry in tmp_path.iterdir()} == {"whole.gcvae", "cut.gcvae"}


def test_a_stored_table_that_is_cut_comes_whole_as_a_frame(
    service: Running, client: Client, model: dict[str, Any]
) -> None:
    with working(service), cutting(service.url, "/content", [700]) as (url, cuts):
        expected = client.sample(model, 2_000, seed=3)
        with Client(url) as cut:
            found = cut.sample(model, 2_000, seed=3)
    assert found.equals(expected)
    assert len(cuts.requests) == 2


@pytest.mark.parametrize("form", ["frame", "bytes", "file"])
def test_rows_that_are_drawn_as_they_leave_are_an_error_where_they_are_cut(
    service: Running, model: dict[str, Any], tmp_path: Path, form: str
) -> None:
    choices: dict[str, dict[str, Any]] = {
        "frame": {}, "bytes": {"format": "csv"}, "file": {"to": tmp_path / "rows.csv"},
    }  # fmt: skip
    with (
        cutting(service.url, "/samples", [300] * 9) as (url, _),
        Client(url) as cut,
        pytest.raises(IncompleteError, match="broke off"),
    ):
        cut.sample(model, 100, seed=3, **choices[form])
    assert list(tmp_path.iterdir()) == []


def test_a_service_that_never_gets_further_is_given_up(
    service: Running, model: dict[str, Any], tmp_path: Path
) -> None:
    with (
        cutting(service.url, "/artifact", [10_000] + [0] * 9) as (url, cuts),
        Client(url, retries=2) as cut,
        pytest.raises(IncompleteError, match="broke off"),
    ):
        cut.download_model(model, tmp_path / "model.gcvae")
    assert len(cuts.requests) == 1 + 3
    assert list(tmp_path.iterdir()) == []


def test_a_report_and_a_map_in_files_are_whole(
    client: Client, model: dict[str, Any], tmp_path: Path
) -> None:
    path = client.dependencies(model, row={"size": 3.5}, to=tmp_path / "map.json")
    assert json.loads(Path(str(path)).read_text())["kind"] == "local"
