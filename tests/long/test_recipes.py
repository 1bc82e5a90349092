"""The recipes of CONTRIBUTING.md name every file that an addition of their kind asks for."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from catalog import JobKind, upgrade
from catalog.settings import CatalogSettings
from gcvae.model.autoregressive_decoder import AutoregressiveDecoder
from gcvae.model.decoders import Conditional, Decoder
from gcvae.model.priors import Prior
from gcvae.schema.kinds import ColumnKind
from gcvae.training.settings import TrainingConfig
from gcvae_client.resources import path_of_id
from models_store.settings import StoreSettings
from runtime.settings import RuntimeSettings
from service.app import create_app
from service.settings import ServiceSettings
from tests.test_layout import ROOT, modules
from worker.processes.child import work_of
from worker.settings import JobSettings

Calls = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Calls:
    settings = ServiceSettings(home_dir=tmp_path_factory.mktemp("home"))
    upgrade(settings.database())
    app = create_app(settings)
    paths = app.openapi()["paths"]
    app.state.resources.close()
    return {(path, method): call for path in paths for method, call in paths[path].items()}


def recipes() -> dict[str, list[str]]:
    """For the title of each recipe the files that its steps name, in their order."""
    chapter = (ROOT / "CONTRIBUTING.md").read_text().split("\n## Recipes\n")[1].split("\n## ")[0]
    sections = re.split(r"^### ", chapter, flags=re.MULTILINE)[1:]
    return {
        section.splitlines()[0]: [
            file
            for step in re.findall(r"^\d+\. .*(?:\n   .*)*", section, flags=re.MULTILINE)
            for file in re.findall(r"`([\w./-]+\.(?:py|md|toml|example))`", step)
        ]
        for section in sections
    }


def code_of(recipe: str) -> list[str]:
    return [file for file in recipes()[recipe] if file.endswith(".py")]


def test_every_file_that_a_recipe_names_is_there() -> None:
    named = [file for files in recipes().values() for file in files]
    assert named
    assert not [file for file in named if not (ROOT / file).is_file()]


def test_a_choice_by_column_kind_stands_in_a_file_of_its_recipe() -> None:
    files = recipes()["A column kind"]
    assert len(files) <= 8
    chosen = {str(path.relative_to(ROOT)) for path in modules() if _chooses_by_kind(path)}
    assert chosen <= set(files)


def _chooses_by_kind(path: Path) -> bool:
    """Whether a table is keyed by column kinds, or something is compared with one."""
    for node in ast.walk(ast.parse(path.read_text())):
        operands: list[ast.expr | None] = []
        if isinstance(node, ast.Dict):
            operands = [*node.keys]
        elif isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
        parts = [part for operand in operands if operand for part in ast.walk(operand)]
        attributes = [part for part in parts if isinstance(part, ast.Attribute)]
        words = {part.value for part in parts if isinstance(part, ast.Constant)}
        if any(ast.unparse(attribute.value) == "ColumnKind" for attribute in attributes):
            return True
        if words & set(ColumnKind) and any(found.attr == "kind" for found in attributes):
            return True
    return False


@pytest.mark.parametrize("kind", JobKind)
def test_a_kind_of_job_has_its_work_its_calls_and_its_place_in_the_client(
    kind: JobKind, calls: Calls
) -> None:
    assert work_of(kind, joins=False).__name__ == kind
    assert path_of_id(f"{kind.id_prefix}_1") == f"/v1/{kind.collection}/{kind.id_prefix}_1"
    if kind is JobKind.TRAIN:
        assert ("/v1/models", "post") in calls
    else:
        asked = kind.value if kind.spec.is_of_model else kind.collection  # a model has one
        assert (f"/v1/models/{{model_id}}/{asked}", "post") in calls
        assert (f"/v1/{kind.collection}/{{result_id}}/content", "get") in calls


def test_a_kind_of_job_is_named_in_the_files_of_its_recipe_only() -> None:
    pattern = set(recipes()["A job kind"])
    assert len(code_of("A job kind")) <= 6
    files = {
        file.replace("scores.py", f"{kind.collection}.py").replace("score.py", f"{kind}.py")
        for file in pattern
        for kind in JobKind
    }
    assert all((ROOT / file).is_file() for file in files)
    # Who trains makes a model and no result: that is told apart in more places.
    named = re.compile(rf"JobKind\.({'|'.join(set(JobKind.__members__) - {'TRAIN'})})\b")
    naming = {path for path in modules() if named.search(path.read_text())}
    assert {str(path.relative_to(ROOT)) for path in naming} <= files


def test_every_call_stands_in_a_file_of_routes_and_says_what_it_does(calls: Calls) -> None:
    assert len(code_of("A REST call")) <= 6
    files = (ROOT / "service" / "routes").glob("[!_]*.py")
    routers = [getattr(import_module(f"service.routes.{f.stem}"), "router", None) for f in files]
    written = {
        (route.path, method.lower())
        for router in routers
        if router is not None
        for route in router.routes
        for method in route.methods
    }
    assert written == set(calls)
    assert all(call.get("description") for call in calls.values())


def test_nobody_asks_of_what_type_a_decoder_or_a_prior_is() -> None:
    families = Decoder, Conditional, Prior
    types = {kind.__name__ for family in families for kind in [family, *family.__subclasses__()]}
    asked = {
        (str(path.relative_to(ROOT)), name.id)
        for path in modules()
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "isinstance"
        for name in ast.walk(call.args[1])
        if isinstance(name, ast.Name) and name.id in types
    }
    assert AutoregressiveDecoder.__name__ in types
    assert not asked


def test_a_setting_is_read_where_its_recipe_says_or_in_its_rule() -> None:
    assert len(recipes()["A setting"]) <= 6
    read = {
        node.attr
        for path in (ROOT / "gcvae").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    assert {field.name for field in fields(TrainingConfig)} <= read


def test_a_setting_of_a_server_stands_in_a_file_of_its_recipe_and_is_read() -> None:
    files = recipes()["A setting of a server"]
    assert len(code_of("A setting of a server")) <= 6
    kinds = ServiceSettings, CatalogSettings, StoreSettings, JobSettings, RuntimeSettings
    assert {f"{kind.__module__.replace('.', '/')}.py" for kind in kinds} <= set(files)
    nodes = [node for path in modules() for node in ast.walk(ast.parse(path.read_text()))]
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    # By name: the limits that their errors name, and passwords beside their URLs.
    read |= {node.value for node in nodes if isinstance(node, ast.Constant)}
    read |= {"database_password", "broker_password"}
    assert {name for kind in kinds for name in kind.model_fields} <= read
