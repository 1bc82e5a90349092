"""What the OpenAPI document says of the calls at a path, for refusals to name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cache
from typing import Any

from fastapi import FastAPI, Request
from starlette.routing import compile_path

from gcvae.errors import Problem
from gcvae.schema.suggestions import unknown_name
from service.errors import RequestError


async def refuse_unknown_parameters(request: Request) -> None:
    """Let queries pass whose parameters the call knows, each once; raises as `refuse_names`."""
    if not request.query_params:
        return
    known = query_parameters(request.app, request.scope["path"], request.method)
    given = [name for name, _ in request.query_params.multi_items()]
    refuse_names(given, known, "parameter", "?")


def query_parameters(app: FastAPI, path: str, method: str) -> list[str]:
    """The names of the query parameters that a call takes."""
    parameters = _calls_at(app, path).get(method.lower(), {}).get("parameters", [])
    return [parameter["name"] for parameter in parameters if parameter["in"] == "query"]


def methods_at(app: FastAPI, path: str) -> list[str]:
    """The methods that are answered at a path; none where the document does not know it."""
    return sorted(method.upper() for method in _calls_at(app, path))


def _calls_at(app: FastAPI, path: str) -> dict[str, Any]:
    """The calls of every template that fits, those with fewer places for names before others."""
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
    """Let names pass that do something: a misspelled one would do nothing, nor would a second.

    Args:
        given: as they stand in the request.
        kind: what they are names of.
        prefix: what stands before a name in its place, as in `?seed`.

    Raises:
        RequestError: some are not known, and the known ones are listed; or stand more than once.
    """
    problems = []
    for name, n in Counter(given).items():
        place = f"{prefix}{name}"
        if name not in known:
            problem = unknown_name(f"unknown {kind}", name, known, pointer=place)
            problems.append(problem if known else replace(problem, expected=f"no {kind}s"))
        elif n > 1:
            problems.append(Problem(f"the {kind} is given {n} times", place, expected="one value"))
    if problems:
        raise RequestError(*problems)


def checked_name(name: str | None, place: str, *, otherwise: str) -> str:
    """The name of what is made, or `otherwise` where none is given.

    Args:
        place: where it stands in the request.

    Raises:
        RequestError: it is too long, or can not be shown.
    """
    if name is None or not name.strip():
        return otherwise
    if len(name) > _MAX_NAME or not name.isprintable():
        expected = f"at most {_MAX_NAME} printable characters"
        raise RequestError(Problem("the name is not valid", place, expected=expected))
    return name
