"""What the OpenAPI document says of the calls at a path, for refusals to name."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any

from fastapi import FastAPI, Request
from starlette.routing import compile_path

from gcvae.errors import Problem
from service.errors import RequestError


async def refuse_unknown_parameters(request: Request) -> None:
    """Let queries pass whose parameters the call knows, each once: another would do nothing.

    Raises:
        RequestError: a parameter is not known, and the known ones are listed; or it stands twice.
    """
    if not request.query_params:
        return
    known = query_parameters(request.app, request.scope["path"], request.method)
    expected = f"one of {', '.join(known)}" if known else "no parameters"
    given = Counter(name for name, _ in request.query_params.multi_items())
    problems = [
        Problem("there is no such query parameter", f"?{name}", expected=expected)
        for name in given
        if name not in known
    ]
    problems += [
        Problem(f"the query parameter stands {n} times", f"?{name}", expected="one value")
        for name, n in given.items()
        if n > 1
    ]
    if problems:
        raise RequestError(*problems)


def query_parameters(app: FastAPI, path: str, method: str) -> list[str]:
    """The names of the query parameters that a call takes."""
    parameters = _calls_at(app, path).get(method.lower(), {}).get("parameters", [])
    return [parameter["name"] for parameter in parameters if parameter["in"] == "query"]


def methods_at(app: FastAPI, path: str) -> list[str]:
    """The methods that are answered at a path; none where the document does not know it."""
    return sorted(method.upper() for method in _calls_at(app, path))


def _calls_at(app: FastAPI, path: str) -> dict[str, Any]:
    for template, calls in app.openapi()["paths"].items():
        if _pattern(template).match(path):
            return dict(calls)
    return {}


@cache
def _pattern(template: str) -> re.Pattern[str]:
    return compile_path(template)[0]
