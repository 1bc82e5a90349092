"""What the pages say is so: their walk-throughs run as written, their links lead somewhere."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from catalog.settings import CatalogSettings
from gcvae import infer_schema, parse_table
from gcvae.rules.splits import splits_of
from service.settings import ServiceSettings
from tests.long.notebooks import prose
from worker.settings import JobSettings

ROOT = Path(__file__).parents[1]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))
} | prose()
README = PAGES["README.md"]
ROOMS = {path.parent.name for path in (ROOT / "gcvae").glob("*/__init__.py")}

RUN_HERE = {
    ("README.md", "python example"),
    ("README.md", "sh example"),
    ("docs/rules.md", "python hard rules"),
    ("docs/guide.md", "python client"),
    ("docs/guide.md", "python library"),
    ("docs/guide.md", "sh files"),
    ("docs/rest.md", "sh rest"),
    ("docs/guide.md", "sh served"),
    ("docs/rules.md", "json rules"),
    ("docs/rest.md", "sh server"),
    ("docs/anomalies.md", "python anomalies"),
    ("docs/databases.md", "python databases"),
    ("docs/scikit-learn.md", "python sklearn"),
    ("docs/tutorial.md", "python tutorial"),
    ("docs/tutorial.md", "sh tutorial"),
    ("docs/tables.md", "json column"),
    ("docs/tables.md", "json patch"),
    ("docs/tables.md", "json steps"),
}
RUN_ELSEWHERE = {
    ("docs/rules.md", "expressions"): "gcvae/**/test_terms.py",
    ("docs/operations.md", "sh backup"): "catalog/**/test_backup.py",
    ("docs/operations.md", "sh restore"): "catalog/**/test_backup.py",
}


def block(page: str, name: str) -> str:
    """Every code block of this page and name, in order, as one script."""
    found = re.findall(rf"(?ms)^```{re.escape(name)}\n(.*?)^```$", PAGES[page])
    assert found, f"{page} has no block named {name}"
    return "\n".join(found)


def section(page: str, title: str) -> str:
    """The text under a heading."""
    found = re.search(rf"(?ms)^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGES[page])
    assert found is not None, title
    return found[1]


def run_python(script: str) -> dict[str, Any]:
    """The names that a script leaves; it runs here, where torch is loaded already."""
    names: dict[str, Any] = {}
    exec(compile(script, "<page>", "exec"), names)
    return names


def test_the_example_of_hard_rules_runs_as_written() -> None:
    left = run_python(block("docs/rules.md", "python hard rules"))
    rows = left["rows"]
    assert len(rows) == 1000
    assert 0.01 < left["share"] < 1
    assert left["score"] == float("-inf")
    assert (rows["rooms"] < rows["area"]).all()
    assert ((rows["city"] == "Rome") == (rows["country"] == "Italy")).all()
    assert ((rows["area"] >= 9 * rows["rooms"]) | (rows["city"] == "Rome")).all()


@pytest.mark.slow
def test_the_example_of_databases_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    left = run_python(block("docs/databases.md", "python databases"))
    drawn = left["drawn"]
    assert len(drawn["users"]) == 400
    assert len(left["scores"]) == len(left["odd"]) == 200
    assert (tmp_path / "report" / "index.html").exists()
    assert drawn["visits"]["user_id"].isin(drawn["users"]["user_id"]).all()


@pytest.mark.slow
def test_the_example_of_scikit_learn_runs_as_written() -> None:
    left = run_python(block("docs/scikit-learn.md", "python sklearn"))
    assert left["classifier"].score(left["wine"], left["grower"]) > 0.9
    assert (left["detector"].predict(left["odd"])[:3] == -1).all()


def test_the_rules_of_the_page_hold_in_such_a_table() -> None:
    random = np.random.default_rng(0)
    n = np.arange(80)
    days = pd.Series(pd.date_range("2024-01-01", periods=80))
    price, quantity, discount = 9.99 + n * 7 % 41, 1 + n % 6, n % 3 * 5
    grade, salary = np.array(["G1", "G2"])[n % 2], 1000 + n * 37 % 901
    x, y, z = (random.normal(size, 0.2, 80).round(2) for size in (5.7, 5.8, 3.5))
    table = pd.DataFrame(
        {
            "ordered": days.dt.strftime("%Y-%m-%d"),
            "shipped": (days + pd.to_timedelta(n % 5, "D")).dt.strftime("%Y-%m-%d"),
            "weekday": days.dt.day_name(),
            "price": price.round(2),
            "quantity": quantity,
            "discount": discount,
            "net": (price * quantity * (1 - discount / 100)).round(2),
            "grade": grade,
            "salary": salary,
            "bonus": (np.where(grade == "G1", 0.02, 0.04) * salary).round(2),
            "x": x,
            "y": y,
            "z": z,
            "depth": (200 * z / (x + y)).round(1),
            "country": np.array(["Italy", "France", "Norway"])[n % 3],
            "currency": np.array(["EUR", "EUR", "NOK"])[n % 3],
            "returned": np.where(n % 4 == 0, days.dt.strftime("%Y-%m-%d"), ""),
            "refund": np.where(n % 8 == 0, n * 3 % 23, "").astype(str),
        }
    )
    given = json.loads(block("docs/rules.md", "json rules"))
    rules = infer_schema(table.astype(str), given).schema.rules
    assert rules is not None
    assert {str(rule): rule.share for rule in rules if rule.share != 1.0} == {}
    assert {rule.keep for rule in rules} == {"soft", "hard", "off"}


def test_the_number_format_of_the_page_reads_and_writes_such_numbers() -> None:
    column = json.loads(block("docs/tables.md", "json column"))
    written = pd.DataFrame({"price": [f"{i}.{i:03},50 €" for i in range(100, 160)]})
    schema = infer_schema(written, {"columns": [column]})
    assert parse_table(written, schema.schema)["price"][0] == 100_100.5


def test_the_steps_of_the_page_split_such_columns() -> None:
    columns = json.loads(block("docs/tables.md", "json steps"))
    days = pd.Series(pd.date_range("2024-01-01", periods=60))
    table = pd.DataFrame(
        {
            "salary": [str(30_000 + 50 * i) for i in range(60)],
            "fare": [f"{2 + i / 4:.2f}" for i in range(60)],
            "price": [f"{5 + i}.99" for i in range(60)],
            "seen": (days + pd.Timedelta(9, "h")).dt.strftime("%Y-%m-%d %H:%M:%S"),
            "due": (days + pd.offsets.MonthEnd(0)).dt.strftime("%Y-%m-%d"),
        }
    )
    schema = infer_schema(table, {"columns": columns}).schema
    assert [schema[c["name"]].to_json()["steps"] for c in columns] == [c["steps"] for c in columns]
    assert {split.column for split in splits_of(schema)} == set(table)


def test_every_block_of_code_is_run_by_a_test() -> None:
    named = {
        (page, name)
        for page, text in PAGES.items()
        for name in re.findall(r"(?m)^```(\S.*)$", text)
    }
    assert named == RUN_HERE | set(RUN_ELSEWHERE)
    for (page, name), pattern in RUN_ELSEWHERE.items():
        [test] = (ROOT / "tests").glob(pattern)
        assert Path(page).name in test.read_text()
        assert name.split()[-1] in test.read_text()


def anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"(?m)^#+ (.*)$", PAGES[page])
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", PAGES[page]):
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), link
        assert not anchor or anchor in anchors(str(target.resolve().relative_to(ROOT))), link


def test_every_page_is_reached_from_the_readme() -> None:
    reached, waiting = set(), ["README.md"]
    while waiting:
        reached.add(page := waiting.pop())
        links = re.findall(r"\]\(([^)#]+\.(?:md|ipynb))", PAGES[page])
        found = {str(((ROOT / page).parent / link).resolve().relative_to(ROOT)) for link in links}
        waiting.extend(found - reached)
    assert set(PAGES) <= reached


def test_the_readme_is_read_in_two_minutes() -> None:
    assert len(README.splitlines()) <= 130


def test_the_figures_of_the_readme_are_those_of_the_page_of_quality() -> None:
    """C2ST and utility, table by table; `real rows` are the two lines above the models."""
    rows = [
        line for line in section("README.md", "How good the rows are").splitlines() if "·" in line
    ]
    models = {
        "gcvae": "default", "plain Gaussian copula": "plain-copula", "MOSTLY AI": "mostlyai",
        "SDV 2.0, Gaussian copula": "sdv-gaussian-copula", "SDV 2.0, TVAE": "sdv-tvae",
        "SDV 2.0, CTGAN": "sdv-ctgan", "arfpy": "arfpy",
    }  # fmt: skip
    assert len(rows) == len(models) + 1
    for line in rows:
        name, *cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        model = next((models[start] for start in models if name.startswith(start)), None)
        for table, cell in zip(("adult", "shoppers", "magic", "auto"), cells, strict=False):
            shown = [float(figure.strip(" *")) for figure in cell.split("·")] if cell else []
            assert shown == measured(table, model, "C2ST", "utility"), (name, table)
        seconds = [float(cells[-1].rstrip(" s"))] if cells[-1] else []
        assert seconds == pytest.approx(measured("adult", model, "fit CPU s"), abs=0.5), name


@pytest.mark.parametrize("against", ["training rows", "held-out rows"])
def test_the_figures_beside_published_models_are_those_of_the_page_of_protocols(
    against: str,
) -> None:
    lines = section("README.md", "How good the rows are").splitlines()
    [shown] = [cells(line) for line in lines if f"**gcvae**, against {against}" in line]
    head, _, *rows = (
        cells(line)
        for line in section("docs/protocols.md", f"Against {against}").splitlines()
        if line.startswith("|")
    )
    figures = [row[head.index("gcvae")].split(" ")[0] for row in rows]
    assert [cell.strip("*") for cell in shown[1:]] == figures


def cells(line: str) -> list[str]:
    """The cells of a table's line."""
    return [cell.strip() for cell in line.strip("|").split("|")]


def measured(table: str, model: str | None, *figures: str) -> list[float]:
    """Means on the page of quality, of a model or of real rows; none where it was not measured."""
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section("docs/quality.md", table).splitlines()
        if line.startswith("|")
    ]
    of_name = {cells[0]: cells for cells in lines}
    if model is None:
        of_rows = {"C2ST": "*real test rows*", "utility": "*floor; real rows' utility*"}
        found = [(of_name[of_rows[f]], f) for f in figures if f in of_rows]
    else:
        found = [(of_name[model], f) for f in figures] if model in of_name else []
    return [float(cells[lines[0].index(f)].split(" ")[0].replace(",", "")) for cells, f in found]


def test_every_setting_in_the_table_exists() -> None:
    """`.env.example` has them all: `tests/test_deployment.py`."""
    table = re.findall(r"(?m)^\|(`.*?)\|", section("docs/operations.md", "Configuration"))
    named = {name for cell in table for name in re.findall(r"`(\w+)`", cell)}
    fields = {**ServiceSettings.model_fields, **CatalogSettings.model_fields}
    assert len(named) > 20
    assert named <= set(fields | JobSettings.model_fields)


def test_the_map_names_every_folder_and_every_room_and_no_other() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    folders = {line.split("/")[0] for line in tracked.stdout.splitlines() if "/" in line}
    rows = re.findall(r"(?m)^\| (`.*?) \| (.*) \|$", section("CONTRIBUTING.md", "The layout"))
    assert len(rows) <= 15
    named = {name for folder, _ in rows for name in re.findall(r"`(\w+)/`", folder)}
    assert named == {folder for folder in folders if not folder.startswith(".")}
    [rooms] = [holds for folder, holds in rows if folder == "`gcvae/`"]
    assert set(re.findall(r"`(\w+)`", rooms)) == ROOMS


def test_the_page_of_the_model_says_which_room_answers() -> None:
    for rooms in re.findall(r"\[(`\w+`(?:, `\w+`)*)\]", PAGES["docs/model.md"]):
        assert set(re.findall(r"\w+", rooms)) <= ROOMS


def test_every_departure_from_the_paper_is_listed() -> None:
    """By the first words of its tag, which stand on the page too."""
    tags = [
        re.sub(r"\s*\n\s*# ", " ", tag)
        for path in (ROOT / "gcvae").rglob("*.py")
        for tag in re.findall(r"# PAPER-DIFF: ((?:.*\n)(?:\s*# .*\n)*)", path.read_text())
    ]
    listed = section("docs/paper.md", "Departures from the paper")
    text = " ".join(listed.split()).replace("*", "").lower()
    assert len(tags) == len(re.findall(r"(?m)^- \*\*", listed))
    for tag in tags:
        assert tag[:58].split(".")[0].lower() in text, tag


def test_every_picture_is_there_and_small() -> None:
    shown = {
        ((ROOT / page).parent / link).resolve()
        for page, text in PAGES.items()
        for link in re.findall(r"!\[.*?\]\((.*?)\)", text)
    }
    starts = {".png": b"\x89PNG", ".svg": b"<svg "}
    assert shown == {path for path in (ROOT / "docs" / "images").rglob("*") if path.is_file()}
    for picture in shown:
        assert picture.read_bytes().startswith(starts[picture.suffix])
        assert picture.stat().st_size < 150_000


def test_the_test_command_is_the_one_that_continuous_integration_runs() -> None:
    assert re.search(r"(?m)^make test\b", README)
    assert re.search(r"(?m)^make test$", (ROOT / ".ci" / "run").read_text())


@pytest.mark.parametrize("page", PAGES)
def test_every_make_target_that_is_named_exists(page: str) -> None:
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
    assert set(re.findall(r"(?m)(?:`|^)make ([a-z-]+)", PAGES[page])) <= targets
