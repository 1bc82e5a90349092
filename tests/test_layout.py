"""The house stands as its plan says: rooms, what the wheel holds, who reads the environment."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = (
    "gcvae", "catalog", "models_store", "runtime", "service", "worker", "gcvae_cli", "gcvae_client",
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


def imported_names(path: Path) -> Iterator[str]:
    """The top-level packages that a module imports, from anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("name", FIXED_BY_THE_CUSTOMER)
def test_a_name_that_the_customer_fixed_is_there(name: str) -> None:
    assert (ROOT / name).exists()


def test_the_wheel_holds_our_packages_and_nothing_else(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q"]
    source = tmp_path / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "demo-out", "gcvae-data"))
    subprocess.run([*build, "-w", tmp_path, source], check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == set(PACKAGES)
    assert [name for name in names if name.startswith("catalog/migrations/versions/")]
    assert "gcvae/py.typed" in names


def test_an_editable_installation_is_found_from_the_folder_above_the_clone(tmp_path: Path) -> None:
    """The clone may be called gcvae, and an import hook would be asked after the clone."""
    recipe = (ROOT / "Makefile").read_text()
    [options] = re.findall(r"(?m)^EDITABLE := (.*)$", recipe)
    assert options == "--config-settings editable_mode=compat -e"
    assert set(re.findall(r"\$\(PIP\) (\S+) '?\.", recipe)) == {"$(EDITABLE)"}
    (tmp_path / "gcvae").symlink_to(ROOT)
    script = f"import sys; sys.path.append({str(ROOT)!r}); from gcvae import TableSchema"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)


def test_every_package_on_disk_is_declared() -> None:
    on_disk = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in modules()
        if path.name == "__init__.py"
    }
    assert on_disk <= set(PROJECT["tool"]["setuptools"]["packages"])


def test_every_import_from_outside_is_declared() -> None:
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *extras["postgres"], *extras["redis"], *extras["traces"]]
    names = {re.split(r"[\[<>=]", line)[0].lower() for line in declared}
    distributions = packages_distributions()
    for path in modules():
        for name in set(imported_names(path)) - set(PACKAGES) - sys.stdlib_module_names:
            homes = {home.lower().replace("_", "-") for home in distributions.get(name, [name])}
            assert homes & names, f"{path.relative_to(ROOT)} imports {name}, declared nowhere"


def test_the_environment_is_read_in_settings_only() -> None:
    for path in modules():
        if path.name != "settings.py":
            text = path.read_text()
            assert not re.search(r"\bos\.(environ|getenv)\b", text), path.relative_to(ROOT)


def test_files_carry_nouns_of_the_field() -> None:
    assert not [path for path in modules() if path.stem in EMPTY_NOUNS]


def test_no_file_is_longer_than_five_hundred_lines() -> None:
    long = [path for path in modules() if len(path.read_text().splitlines()) > 500]
    assert not [str(path.relative_to(ROOT)) for path in long]


def test_no_address_of_another_machine_is_written_in_the_packages() -> None:
    allowed = r"127\.0\.0\.1|localhost|\[::1\]|\[?\{"
    for path in modules():
        for url in re.findall(r"https?://[^\s\"'`)]+", path.read_text()):
            assert re.match(rf"https?://(?:{allowed})", url), f"{path.relative_to(ROOT)}: {url}"


def test_every_resource_package_is_declared() -> None:
    """`files("package")` is an import that no import statement shows."""
    named = {
        name.replace("_", "-")
        for path in modules()
        for name in re.findall(r'\bfiles\("(\w+)"\)', path.read_text())
    }
    declared = " ".join(PROJECT["project"]["dependencies"])
    assert all(name in declared for name in named - set(PACKAGES))


def test_every_declared_package_has_its_version_pinned() -> None:
    project = PROJECT["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {re.split(r"[\[<>=;]", line)[0].lower().replace("_", "-") for line in declared}
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    assert names - {"gcvae"} <= pinned
