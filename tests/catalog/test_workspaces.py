"""No filter can be forgotten: whose records are read is said once, when they are opened."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import catalog as catalog_package
from catalog import Catalog, JobKind, Workspace

_FOR_ALL = {
    "all_jobs",
    "audit",
    "inventory",
    "keys",
    "leases",
    "orphans",
    "outbox",
    "retention",
    "runs",
    "sessions",
    "statistics",
    "workers",
}
"""Gateways to all workspaces: of workers, of operators, of who lets people in."""


def _functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every function and method that is written in the catalog."""
    for found in pkgutil.walk_packages(catalog_package.__path__, "catalog."):
        if ".migrations" in found.name:
            continue
        module = importlib.import_module(found.name)
        for holder in (module, *(c for _, c in inspect.getmembers(module, inspect.isclass))):
            for name, function in vars(holder).items():
                if inspect.isfunction(function) and function.__module__ == found.name:
                    yield f"{found.name}: {name}", function


def test_no_function_of_the_catalog_has_a_default_for_a_workspace() -> None:
    named = {
        place: parameter
        for place, function in _functions()
        for parameter in inspect.signature(function).parameters.values()
        if "workspace" in parameter.name
    }
    assert len(named) > 10
    for place, parameter in named.items():
        assert parameter.default is inspect.Parameter.empty, place
        assert "None" not in str(parameter.annotation), f"{place}: all workspaces have another name"


def test_what_is_of_one_workspace_is_opened_for_it_and_what_is_not_is_listed_here(
    catalog: Catalog,
) -> None:
    opened = catalog.workspace("ours")
    bound = {name for name in vars(opened) if name != "name"}
    assert bound == {
        "datasets", "models", "jobs", "results", "idempotency", "audit", "usage", "privacy",
        "connections", "webhooks", "schedules",
    }  # fmt: skip
    assert {name for name in vars(catalog) if name[0] != "_"} == _FOR_ALL | {"database"}
    for gateway in bound:
        for name, method in inspect.getmembers(getattr(opened, gateway), inspect.ismethod):
            asked = inspect.signature(method).parameters
            assert name == "__init__" or "workspace" not in asked, f"{gateway}.{name}"


def test_a_workspace_that_nobody_used_is_empty(catalog: Catalog) -> None:
    opened: Workspace = catalog.workspace("nobody's")
    gateways = (opened.datasets, opened.models, opened.jobs, opened.results, opened.audit)
    assert [gateway.list().items for gateway in gateways] == [[], [], [], [], []]
    assert opened.results.of_models(JobKind.REPORT, []) == {}
    assert opened.privacy.spendings(["0" * 64]) == {}
