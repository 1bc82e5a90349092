"""Checks of query parameters and HTTP methods against the OpenAPI document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cache
from typing import Any

from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.routing import compile_path

from catalog.errors import NotFoundError
from catalog.records import DataKind
from gcvae.errors import Problem
from gcvae.schema.suggestions import unknown_name
from service.errors import RequestError

OF_DATABASES = "x-parameters-of-databases"
"""Member of an OpenAPI operation that lists the query parameters it supports for a model of a
database."""


async def refuse_unknown_parameters(request: Request) -> None:
    """Checks that each query parameter is known and given once, or raises a RequestError."""
    if not request.query_params:
        return
    known = query_parameters(request.app, request.scope["path"], request.method)
    given = [name for name, _ in request.query_params.multi_items()]
    if not set(given) <= set(known):
        known = await run_in_threadpool(_offered, request, known)
    refuse_names(given, known, "parameter", "?")


def _offered(request: Request, known: list[str]) -> list[str]:
    """Returns those of the endpoint's query parameters `known` that the requested model supports.
    Some endpoints support fewer for a model of a database than for one of a table."""
    call = _calls_at(request.app, request.scope["path"]).get(request.method.lower(), {})
    if OF_DATABASES not in call:
        return known
    catalog = request.app.state.resources.catalog
    try:
        model = catalog.workspace(request.state.workspace).models.get(
            request.path_params["model_id"]
        )
    except NotFoundError:
        return known
    return list(call[OF_DATABASES]) if model.kind is DataKind.DATABASE else known


def query_parameters(app: FastAPI, path: str, method: str) -> list[str]:
    """Returns the names of the query parameters that the endpoint `method` `path` supports."""
    parameters = _calls_at(app, path).get(method.lower(), {}).get("parameters", [])
    return [parameter["name"] for parameter in parameters if parameter["in"] == "query"]


def methods_at(app: FastAPI, path: str) -> list[str]:
    """Returns the HTTP methods that a path supports; an empty list if the path is unknown."""
    return sorted(method.upper() for method in _calls_at(app, path))


def _calls_at(app: FastAPI, path: str) -> dict[str, Any]:
    """Returns the OpenAPI operations of a path by method. If several path templates match, the one
    with fewest path parameters is used."""
    paths = app.openapi()["paths"]
    fitting = (template for template in paths if _pattern(template).match(path))
    calls: dict[str, Any] = {}
    for template in sorted(fitting, key=lambda template: -template.count("{")):
        calls |= paths[template]
    return calls


@cache
def _pattern(template: str) -> re.Pattern[str]:
    return compile_path(template)[0]


_MAX_NAME = 200


def refuse_names(given: Iterable[str], known: Collection[str], kind: str, prefix: str) -> None:
    """Checks that names are known and unique, because a misspelled name would otherwise be ignored.

    Args:
        given: Names in the request.
        known: Names that the endpoint supports.
        kind: Word that error messages use for a name, such as "parameter".
        prefix: Text before the name in an error's pointer, such as "?" in `?seed`.

    Raises:
        RequestError: A name is unknown or repeated.
    """
    problems = []
    for name, n in Counter(given).items():
        pointer = f"{prefix}{name}"
        if name not in known:
            problem = unknown_name(f"unknown {kind}", name, known, pointer=pointer)
            problems.append(problem if known else replace(problem, expected=f"no {kind}s"))
        elif n > 1:
            problems.append(
                Problem(f"the {kind} is given {n} times", pointer, expected="one value")
            )
    if problems:
        raise RequestError(*problems)


def checked_name(name: str | None, pointer: str, *, otherwise: str) -> str:
    """Returns the name for a new resource: `name`, or `otherwise` if it is None or blank.

    Args:
        pointer: Location of the name in the request, such as `/name` or `?name`, for errors.

    Raises:
        RequestError: The name is too long, or has unprintable characters.
    """
    if name is None or not name.strip():
        return otherwise
    if len(name) > _MAX_NAME or not name.isprintable():
        expected = f"at most {_MAX_NAME} printable characters"
        raise RequestError(Problem("the name is not valid", pointer, expected=expected))
    return name
