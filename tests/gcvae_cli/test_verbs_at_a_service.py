"""The verbs of the commands on files, done by a service: the same answers as from files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gcvae_cli.__main__ import main
from tests.gcvae_cli.small_table import N_ROWS
from tests.running_service import Running, running, settings_in, working


@dataclass(frozen=True)
class Served:
    """A model of a service, and what the service gave out for it."""

    service: Running
    model: str
    file: Path
    """The same model, as `train -o` saved it."""
    at: tuple[str, str]
    """The option that names the service."""


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    """A table of a name in another script, trained by `train --server`."""
    table = folder / "таблица.csv"
    table.write_bytes((folder / "table.csv").read_bytes())
    saved = folder / "served.gcvae"
    with (
        running(settings_in(folder / "service", max_inline_sample_rows=50)) as service,
        working(service),
    ):
        at = ("--server", service.url)
        asked = ["train", str(table), *at, "-o", str(saved), "--json", "--set", "max_steps=20"]
        answer = folder / "answer"
        assert _printed(asked, answer) == 0
        # On a busy machine the worker, in this process here, tells of checkpoints before.
        told = answer.read_text()
        yield Served(service, json.loads(told[told.index("{") :])["model"], saved, at)


def _printed(arguments: list[str], into: Path) -> int:
    from contextlib import redirect_stdout

    with into.open("w") as stream, redirect_stdout(stream):
        return main(arguments)


@pytest.mark.parametrize(("rows", "ending"), [(20, "csv"), (80, "csv.gz")])
def test_rows_of_a_service_are_those_that_its_model_draws_as_a_file(
    served: Served, tmp_path: Path, rows: int, ending: str
) -> None:
    asked = ["--rows", str(rows), "--seed", "4", "--given", '{"colour": "red"}']
    there, here = (tmp_path / f"{name}.{ending}" for name in ("there", "here"))
    assert main(["sample", served.model, *served.at, *asked, "-o", str(there)]) == 0
    assert main(["sample", str(served.file), *asked, "-o", str(here)]) == 0
    assert there.read_bytes() == here.read_bytes()
    text = gzip.decompress(there.read_bytes()) if ending.endswith("gz") else there.read_bytes()
    assert text.count(b"\n") == rows + 1


@pytest.mark.parametrize("verb", ["score", "encode", "impute"])
def test_what_a_service_says_of_rows_is_what_the_file_says(
    served: Served, folder: Path, tmp_path: Path, verb: str
) -> None:
    table = str(folder / "table.csv")
    there, here = (str(tmp_path / f"{name}.csv") for name in ("there", "here"))
    assert main([verb, served.model, table, *served.at, "-o", there]) == 0
    assert main([verb, str(served.file), table, "-o", here]) == 0
    assert Path(there).read_text() == Path(here).read_text()


@pytest.mark.parametrize("ending", ["csv", "json", "svg"])
def test_a_map_of_a_service_is_that_of_the_file(
    served: Served, tmp_path: Path, ending: str
) -> None:
    there, here = (tmp_path / f"{name}.{ending}" for name in ("there", "here"))
    assert main(["dependencies", served.model, *served.at, "-o", str(there)]) == 0
    assert main(["dependencies", str(served.file), "-o", str(here)]) == 0
    assert there.read_bytes() == here.read_bytes()


def test_a_table_that_is_there_is_named_by_its_id(
    served: Served, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drops = tmp_path / "schema.json"
    drops.write_text('{"version": 1, "columns": [{"name": "grade", "drop": true}]}')
    assert main(["schema", str(folder / "table.csv"), *served.at, "--json"]) == 0
    dataset = json.loads(capsys.readouterr().out)["dataset"]
    assert main(["schema", dataset, *served.at, "--schema", str(drops)]) == 0
    assert json.loads(capsys.readouterr().out)["columns"][3]["drop"] is True
    assert main(["train", dataset, *served.at, "--name", "zwei", "--set", "max_steps=2"]) == 0
    model = capsys.readouterr().out.strip()
    assert main(["sample", model, *served.at, "--rows", "2", "-o", "-"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "size,count,colour"


def test_a_report_is_made_where_a_table_is_named_and_taken_where_there_is_one(
    served: Served, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    assert main(["report", served.model, *served.at, "-o", str(page)]) == 1
    assert "report" in capsys.readouterr().err
    assert not page.exists()
    asked = ["--holdout", str(folder / "table.csv"), "--target", "colour", "--seed", "3"]
    assert main(["report", served.model, *served.at, *asked, "-o", str(page)]) == 0
    assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")
    told = capsys.readouterr().out
    assert told.startswith("fidelity: ")
    document = tmp_path / "report.json"
    assert main(["report", served.model, *served.at, "-o", str(document)]) == 0
    assert capsys.readouterr().out == told
    assert json.loads(document.read_text())["privacy"]["verdict"] in told.replace(" ", "_")


def test_a_service_lists_what_it_has(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "models", *served.at]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert any(line.startswith(served.model) and line.endswith("таблица") for line in listed)
    assert main(["list", "datasets", *served.at, "--json", "--rows", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == N_ROWS
    assert main(["list", "jobs", *served.at]) == 0
    assert "succeeded  train" in capsys.readouterr().out


REFUSED = [
    (["sample", "{file}", "--rows", "2", "-o", "-"], "`gcvae import"),
    (["score", "orders", "{file}", "-o", "-"], "gcvae list models"),
    (["sample", "mdl_none", "--rows", "2", "-o", "-"], "no model 'mdl_none'"),
    (["sample", "{model}", "-o", "-"], "--rows"),
    (["sample", "{model}", "--rows", "2", "-o", "rows.txt"], ".csv"),
    (["score", "{model}", "{file}", "-o", "scores.parquet"], ".csv, .csv.gz"),
    (["sample", "{model}", "--rows", "2", "-o", "-", "--threads", "2"], "No such option"),
    (["sample", "{model}", "--rows", "2", "-o", "-", "--given", '{"hue": 1}'], "hue"),
    (["train", "nowhere.csv"], "nowhere.csv: there is no such file"),
    (["train", "{file}", "--set", "max_steps=none"], "max_steps"),
    (["dependencies", "{model}", "-o", "-", "--kind", "total", "--row", "{}"], "local"),
    (["list", "tables"], "datasets"),
]


@pytest.mark.parametrize(("asked", "told"), REFUSED)
def test_what_is_asked_wrongly_is_refused_in_one_line_that_says_what_would_be_right(
    served: Served, folder: Path, capsys: pytest.CaptureFixture[str], asked: list[str], told: str
) -> None:
    names = {"{file}": str(folder / "table.csv"), "{model}": served.model}
    before = served.service.traces()["store"] if asked[0] != "train" else None
    assert main([*(names.get(word, word) for word in asked), *served.at]) in (1, 2)
    said = capsys.readouterr()
    assert said.out == ""
    lines = [line for line in said.err.splitlines() if not line.startswith("gcvae: uploaded")]
    assert len(lines) == 1
    assert told in lines[0]
    assert before is None or served.service.traces()["store"] == before


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (["--server", "localhost"], "http://"),
        pytest.param(
            ["--server", "http://127.0.0.1:1"],
            "http://127.0.0.1:1 does not respond",
            marks=pytest.mark.slow,
        ),
        (["--server"], "--server"),
        (["--server=http://127.0.0.1:1", "--key-file", "{empty}"], "contains no API key"),
    ],
)
def test_a_service_that_can_not_be_asked_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], at: list[str], told: str
) -> None:
    empty = tmp_path / "key"
    empty.write_text("\n")
    at = [str(empty) if word == "{empty}" else word for word in at]
    assert main(["sample", "mdl_x", "--rows", "1", "-o", "-", *at]) in (1, 2)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert told in said


def test_a_verb_of_a_service_has_help_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", "--server", "URL", "--help"]) == 0
    there = capsys.readouterr().out
    assert main(["sample", "--help"]) == 0
    here = capsys.readouterr().out
    assert "--key-file" in there
    assert "gcvae sample [OPTIONS]" in there
    assert "--threads" in here
    assert "gcvae sample --server URL --help" in here
    assert main(["--help"]) == 0
    assert "--server" not in capsys.readouterr().out.replace(
        "Files and services (with --server)", ""
    )


def test_a_minimal_file_of_a_service_is_the_one_that_is_written_here(
    served: Served, tmp_path: Path
) -> None:
    there, here = tmp_path / "there.gcvae", tmp_path / "here.gcvae"
    how = ["--minimal", "--scoring", "flag"]
    assert main(["export", served.model, *served.at, *how, "-o", str(there)]) == 0
    assert main(["export", str(served.file), *how, "-o", str(here)]) == 0
    assert there.read_bytes() == here.read_bytes()
    assert there.stat().st_size < served.file.stat().st_size


def test_a_models_scores_are_restricted_once_and_for_all(
    served: Served, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", str(served.file), *served.at]) == 0
    model, table, scores = capsys.readouterr().out.strip(), folder / "table.csv", tmp_path / "s.csv"
    asked = ["score", model, str(table), *served.at, "-o", str(scores), "--draws", "3"]
    assert main(["restrict", model, "--scoring", "flag", *served.at]) == 0
    assert capsys.readouterr().out == "flag\n"
    assert main(asked) == 0
    assert scores.read_text().splitlines()[0] == "is_rare"
    assert len(scores.read_text().splitlines()) == N_ROWS + 1
    assert main(["restrict", model, "--scoring", "off", *served.at]) == 0
    capsys.readouterr()
    assert main(asked) == 1
    assert "scoring is off" in capsys.readouterr().err
    assert main(["restrict", model, "--scoring", "flag", *served.at]) == 1
    assert "cannot be changed" in capsys.readouterr().err
