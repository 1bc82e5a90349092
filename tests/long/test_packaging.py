"""Three distributions, one for each use: the library, the client, the server.

What each wheel holds and asks for, and that the library works where nothing of the others is.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from email.message import Message
from email.parser import Parser
from importlib.metadata import packages_distributions
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {"gcvae": ROOT, "gcvae-client": ROOT / "gcvae_client", "gcvae-server": ROOT / "server"}
PACKAGES = {
    "gcvae": {"gcvae", "gcvae_cli", "gcvae_sources"},
    "gcvae-client": {"gcvae_client"},
    "gcvae-server": {"catalog", "models_store", "runtime", "service", "worker"},
}
ALL_PACKAGES = set().union(*PACKAGES.values())
PROJECTS = {
    name: tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    for name, folder in FOLDERS.items()
}
OF_THE_CHECKOUT = {"dev", "bench", "load", "protocols"}
"""Extras for work on this repository, which no package imports."""


def normalized(requirement: str) -> str:
    """The name of the distribution that a requirement asks for."""
    return re.split(r"[\[<>=!~; ]", requirement)[0].lower().replace("_", "-")


def declared(name: str) -> set[str]:
    """What a distribution asks for, with the extras that its packages use."""
    extras = PROJECTS[name].get("optional-dependencies", {})
    asked = [
        line for extra, lines in extras.items() if extra not in OF_THE_CHECKOUT for line in lines
    ]
    return {normalized(line) for line in [*PROJECTS[name]["dependencies"], *asked]}


def behind(path: Path) -> tuple[str, ...]:
    """The distributions that are there where a module is used."""
    room = path.relative_to(ROOT).parts[:2]
    if room in (("gcvae_cli", "client"), ("gcvae_cli", "agents")):
        return "gcvae", "gcvae-client"
    if room == ("gcvae_cli", "server") or room[0] in PACKAGES["gcvae-server"]:
        return "gcvae", "gcvae-server"
    return ("gcvae-client",) if room[0] == "gcvae_client" else ("gcvae",)


def modules() -> Iterator[Path]:
    """Every Python file of our packages."""
    for package in sorted(ALL_PACKAGES):
        yield from sorted((ROOT / package).rglob("*.py"))


def imported_names(path: Path) -> Iterator[str]:
    """The top-level packages that a module imports, from anywhere in it, and those of its files."""
    text = path.read_text()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            yield node.module.split(".")[0]
    yield from re.findall(r'\bfiles\("(\w+)"\)', text)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, zipfile.ZipFile]:
    """The wheel of each distribution, built without an index."""
    made = tmp_path_factory.mktemp("wheels")
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q"]
    subprocess.run([*build, "-w", made, *FOLDERS.values()], check=True, capture_output=True)
    files = {normalized(path.name.split("-")[0]): path for path in made.iterdir()}
    assert set(files) == set(FOLDERS)
    return {name: zipfile.ZipFile(path) for name, path in files.items()}


def held(wheel: zipfile.ZipFile) -> set[str]:
    """The files of a wheel, without what says what it is."""
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


def metadata(wheel: zipfile.ZipFile) -> Message:
    """What a wheel says of itself."""
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return Parser().parsestr(wheel.read(name).decode())


@pytest.mark.parametrize("name", FOLDERS)
def test_a_wheel_holds_its_packages_whole_and_nothing_else(
    wheels: Mapping[str, zipfile.ZipFile], name: str
) -> None:
    files = held(wheels[name])
    assert {file.split("/")[0] for file in files} == PACKAGES[name]
    on_disk = {str(path.relative_to(ROOT)) for path in modules()}
    assert {file for file in files if file.endswith(".py")} == {
        path for path in on_disk if path.split("/")[0] in PACKAGES[name]
    }
    others = {file for file in files if not file.endswith(".py")}
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "service/site/static").iterdir()}
    assert "service/site/static/page.html" in pages
    assert (
        others
        == {
            "gcvae": {
                "gcvae/py.typed",
                "gcvae/evaluation/report/page.html.jinja",
                "gcvae/evaluation/report/dossier.html.jinja",
                "gcvae/evaluation/report/database.html.jinja",
                "gcvae/evaluation/report/page.css",
            },
            "gcvae-client": set(),
            "gcvae-server": {"catalog/migrations/script.py.mako", *pages},
        }[name]
    )


def test_a_wheel_asks_for_what_its_use_needs(wheels: Mapping[str, zipfile.ZipFile]) -> None:
    asked = {name: metadata(wheel).get_all("Requires-Dist", []) for name, wheel in wheels.items()}
    always = {
        name: {normalized(line) for line in lines if "extra ==" not in line}
        for name, lines in asked.items()
    }
    assert always["gcvae-client"] == {"httpx"}
    assert not always["gcvae"] & {*always["gcvae-client"], *always["gcvae-server"], "matplotlib"}
    assert [line for line in asked["gcvae"] if "'plots'" in line] == [
        "matplotlib>=3.10; extra == 'plots'"
    ]
    assert set(metadata(wheels["gcvae-server"]).get_all("Provides-Extra", [])) == {
        "mysql", "postgres", "redis", "traces",
    }  # fmt: skip


def test_the_server_asks_for_the_library_of_its_own_version() -> None:
    [version] = {project["version"] for project in PROJECTS.values()}
    assert f"gcvae[plots]=={version}" in PROJECTS["gcvae-server"]["dependencies"]


def test_the_command_comes_with_the_library(wheels: Mapping[str, zipfile.ZipFile]) -> None:
    commands = {
        name: [file for file in wheel.namelist() if file.endswith("/entry_points.txt")]
        for name, wheel in wheels.items()
    }
    assert [name for name, files in commands.items() if files] == ["gcvae"]
    [points] = commands["gcvae"]
    assert b"gcvae = gcvae_cli.__main__:main" in wheels["gcvae"].read(points)


@pytest.mark.parametrize("folder", FOLDERS.values(), ids=FOLDERS)
def test_an_editable_installation_is_the_clone_itself(folder: Path, tmp_path: Path) -> None:
    """No copy, and a path: an import hook would be asked after a clone that is called gcvae."""
    script = f"from hatchling.build import build_editable; build_editable({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True, capture_output=True)
    [path] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        [file] = held(wheel)
        assert file.endswith(".pth")
        assert wheel.read(file).decode().split("\n") == [str(ROOT)]


def test_the_library_is_found_from_the_folder_above_a_clone_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "gcvae").symlink_to(ROOT)
    script = f"import sys; sys.path.append({str(ROOT)!r}); from gcvae import TableSchema"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)


def test_every_import_from_outside_is_declared_where_it_is_used() -> None:
    homes = packages_distributions()
    for path in modules():
        names = set().union(*(declared(name) for name in behind(path)))
        ours = set().union(*(PACKAGES[name] for name in behind(path)))
        for name in set(imported_names(path)) - ours - sys.stdlib_module_names:
            of = {normalized(home) for home in homes.get(name, [name])}
            assert of & names, f"{path.relative_to(ROOT)} imports {name}, declared nowhere"


def test_every_declared_package_has_its_version_pinned() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {normalized(line) for line in lines if not line.startswith("#")}
    development = map(normalized, PROJECTS["gcvae"]["optional-dependencies"]["dev"])
    asked = set().union(*map(declared, FOLDERS), development)
    assert asked - set(FOLDERS) <= pinned


def test_the_makefile_installs_all_three() -> None:
    recipes = (ROOT / "Makefile").read_text()
    folders = dict(re.findall(r"(?m)^(LIBRARY|SERVER|CLIENT) := -e (\S+)$", recipes))
    assert {(ROOT / folder).resolve() for folder in folders.values()} == set(FOLDERS.values())
    for target in (r"\.installed", r"\.installed-dev"):
        [recipe] = re.findall(rf"(?m)^\$\(VENV\)/{target}:(?:.*\\\n)*.*\n((?:\t.*\n)+)", recipes)
        assert all(f"$({name})" in recipe for name in folders)


def not_of_the_library() -> set[str]:
    """The modules that a library's user has not: the client's, the server's and matplotlib's."""
    beside = declared("gcvae-server") | declared("gcvae-client") | {"matplotlib"}
    # The server needs the library, and typer brings pydantic along.
    beside -= {"gcvae", "pydantic", "pydantic-core"}
    foreign = {
        module
        for module, homes in packages_distributions().items()
        if beside & set(map(normalized, homes))
    }
    assert foreign >= {"fastapi", "celery", "sqlalchemy", "kombu", "obstore", "httpx", "matplotlib"}
    return foreign | PACKAGES["gcvae-client"] | PACKAGES["gcvae-server"]


def run_without(absent: set[str], script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The script in a Python of its own, in which there are no such packages."""
    preamble = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""
    run = [sys.executable, "-c", preamble + script]
    return subprocess.run(run, cwd=folder, capture_output=True, text=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a table, whose columns have names of two scripts."""
    random = np.random.default_rng(0)
    size = random.normal(50.0, 9.0, 200).round(1)
    frame = pd.DataFrame({"размер": size, "price": (size * 3 + random.normal(size=200)).round(2)})
    frame["kind"] = np.where(size > 50, "large", "small")
    frame.loc[::9, "price"] = np.nan
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path


def test_the_library_works_where_there_is_neither_server_nor_client_nor_matplotlib(
    folder: Path,
) -> None:
    script = """
from gcvae import Synthesizer, TableReader, read_table
from gcvae.errors import MissingPackageError

assert Synthesizer and "torch" in sys.modules
slow_to_load = {"scipy.stats", "sklearn"} & set(sys.modules)
assert not slow_to_load, slow_to_load

fitted = Synthesizer.fit(TableReader("table.csv"), preset="fast", settings={"max_steps": 5})
fitted.save("model.gcvae")
again = Synthesizer.load("model.gcvae")
assert again.sample(20, seed=1).equals(fitted.sample(20, seed=1))
table = read_table("table.csv")
assert len(again.log_likelihood(table, draws=5)) == 200
assert not again.impute(table, seed=1).isna().any().any()
found = again.dependencies("total")
assert len(found.to_json()["tau"]) == 3
try:
    found.draw("map.png")
except MissingPackageError as error:
    assert "pip install 'gcvae[plots]'" in str(error), error
else:
    raise AssertionError("drawn without matplotlib")
try:
    found._repr_png_()
except NotImplementedError:  # by this a notebook shows it as text
    pass
else:
    raise AssertionError("drawn without matplotlib")
"""
    done = run_without(not_of_the_library(), script, folder)
    assert done.returncode == 0, done.stderr
    assert not (folder / "map.png").exists()


def test_the_commands_on_files_need_the_library_alone(folder: Path) -> None:
    script = """
from gcvae_cli.__main__ import main

for line in (
    "schema table.csv -o schema.json",
    "train table.csv -o model.gcvae --preset fast --set max_steps=5 --set d_latent=2",
    "sample model.gcvae --rows 20 --seed 1 -o rows.csv.gz",
    "score model.gcvae table.csv --draws 5 -o scores.parquet",
    "impute model.gcvae table.csv -o whole.csv",
    "encode model.gcvae table.csv -o places.csv",
    "dependencies model.gcvae -o map.json",
    "manifold model.gcvae -o manifold.json",
    "settings -o settings.md",
):
    assert main(line.split()) == 0, line
for line in ("dependencies model.gcvae -o map.png", "manifold model.gcvae -o manifold.svg"):
    assert main(line.split()) == 1, line
"""
    done = run_without(not_of_the_library(), script, folder)
    assert done.returncode == 0, done.stderr
    made = {path.name for path in folder.iterdir()}
    assert made >= {"rows.csv.gz", "scores.parquet", "whole.csv", "places.csv", "map.json"}
    assert not made & {"map.png", "manifold.svg"}
    told = [line for line in done.stderr.splitlines() if "matplotlib" in line]
    wanted = "pictures need matplotlib, which is not installed: pip install 'gcvae[plots]'"
    assert told == [f"gcvae: {wanted}"] * 2


def test_the_help_names_every_command_without_loading_what_they_need(folder: Path) -> None:
    script = "from gcvae_cli.__main__ import main\nassert main(['--help']) == 0"
    heavy = {"torch", "numpy", "pandas", "scipy", "sklearn", "pyarrow", "pydantic", "faker"}
    done = run_without(not_of_the_library() | heavy, script, folder)
    assert (done.returncode, done.stderr) == (0, "")
    named = set(re.findall(r"(?m)^│ (\w+) ", done.stdout))
    assert named == {
        "schema", "train", "sample", "score", "impute", "clone", "dependencies", "encode",
        "manifold", "settings", "report", "import", "open", "serve", "api", "worker", "demo",
        "audit", "db", "keys", "store", "list", "export", "restrict", "mcp",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("serve", "./server"),
        ("api", "./server"),
        ("worker", "./server"),
        ("worker --check", "./server"),
        ("db upgrade", "./server"),
        ("store verify", "./server"),
        ("store gc", "./server"),
        ("demo", "./server ./gcvae_client"),
        ("import table.csv", "./gcvae_client"),
    ],
)
def test_a_command_without_what_it_needs_says_what_to_install(
    folder: Path, line: str, wanted: str
) -> None:
    script = f"from gcvae_cli.__main__ import main\nsys.exit(main({line.split()!r}))"
    done = run_without(not_of_the_library(), script, folder)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert re.match(rf"gcvae: `gcvae {line.split()[0]}` needs the package \w+, ", done.stderr)
    assert f"`pip install {wanted}` brings it" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["table.csv"], "nothing half made stays"


def test_the_demo_says_at_once_that_the_server_is_missing(folder: Path) -> None:
    script = "from gcvae_cli.__main__ import main\nsys.exit(main(['demo']))"
    done = run_without(PACKAGES["gcvae-server"], script, folder)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "`pip install ./server ./gcvae_client` brings it" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["table.csv"]


@pytest.mark.parametrize(
    ("package", "line"),
    [
        ("psycopg", "worker --check"),
        ("psycopg", "db upgrade"),
        ("psycopg", "api --port 0"),
        ("redis", "worker --check"),
    ],
)
def test_a_driver_that_is_missing_is_named_with_its_extra(
    folder: Path, package: str, line: str
) -> None:
    script = f"""
import os
os.environ |= {{
    "GCVAE_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"
    if {package!r} == "psycopg" else "sqlite:///records.sqlite",
    "GCVAE_BROKER_URL": "redis://127.0.0.1:1/0",
    "GCVAE_STORE_URL": "file:///" + os.getcwd().strip("/"),
}}
from gcvae_cli.__main__ import main
sys.exit(main({line.split()!r}))
"""
    done = run_without({package}, script, folder)
    extra = {"psycopg": "postgres", "redis": "redis"}[package]
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"pip install 'gcvae-server[{extra}]'" in done.stderr
