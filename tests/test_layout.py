"""The house stands as its plan says: rooms, and who reads the environment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "gcvae", "catalog", "models_store", "runtime", "service", "worker", "gcvae_cli", "gcvae_client",
    "gcvae_sources",
)  # fmt: skip
FIXED_BY_THE_CUSTOMER = (
    "pyproject.toml",
    "service",
    "worker",
    "models_store",
    "docker-compose.yml",
    "Dockerfile",
    "tests",
    "README.md",
)
EMPTY_NOUNS = {"utils", "util", "common", "helpers", "helper", "core", "misc"}


def modules() -> Iterator[Path]:
    """Every Python file of our packages."""
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("name", FIXED_BY_THE_CUSTOMER)
def test_a_name_that_the_customer_fixed_is_there(name: str) -> None:
    assert (ROOT / name).exists()


def test_the_environment_is_read_in_settings_only() -> None:
    for path in modules():
        if path.name != "settings.py":
            text = path.read_text()
            assert not re.search(r"\bos\.(environ|getenv)\b", text), path.relative_to(ROOT)


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imports).prepare()  # a CycleError names the circle


def _prose() -> Iterator[Path]:
    yield from modules()
    yield from (ROOT / "tests").rglob("*.py")
    yield from (ROOT / "benchmarks").rglob("*.py")
    yield from [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def test_every_module_and_file_that_a_text_names_is_there() -> None:
    stale = []
    for path in _prose():
        text = path.read_text()
        for named in re.findall(rf"`((?:{'|'.join(PACKAGES)})/[\w/]+\.py)`", text):
            if not (ROOT / named).exists():
                stale.append(f"{path.relative_to(ROOT)}: {named}")
        for named in re.findall(rf"`((?:{'|'.join(PACKAGES)})(?:\.[a-z_]+)+)\b", text):
            if not _is_module_or_in_one(named.split(".")):
                stale.append(f"{path.relative_to(ROOT)}: {named}")
    assert not stale


def _is_module_or_in_one(parts: list[str]) -> bool:
    place = ROOT / parts[0]
    for part in parts[1:]:
        if place.with_suffix(".py").is_file():
            return re.search(rf"\b{part}\b", place.with_suffix(".py").read_text()) is not None
        place = place / part
    if place.is_dir() or place.with_suffix(".py").is_file():
        return True
    init = place.parent / "__init__.py"
    return init.is_file() and re.search(rf"\b{parts[-1]}\b", init.read_text()) is not None


def test_files_carry_nouns_of_the_field() -> None:
    assert not [path for path in modules() if path.stem in EMPTY_NOUNS]


def test_no_address_of_another_machine_is_written_in_the_packages() -> None:
    allowed = r"127\.0\.0\.1|localhost|\[::1\]|\[?\{"
    for path in modules():
        for url in re.findall(r"https?://[^\s\"'`)]+", path.read_text()):
            assert re.match(rf"https?://(?:{allowed})", url), f"{path.relative_to(ROOT)}: {url}"
