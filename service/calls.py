"""What the OpenAPI document says of the calls at a path, for refusals to name."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from fastapi import FastAPI, Request
from starlette.routing import compile_path

from service.names import refuse_names


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
    for template, calls in app.openapi()["paths"].items():
        if _pattern(template).match(path):
            return dict(calls)
    return {}


@cache
def _pattern(template: str) -> re.Pattern[str]:
    return compile_path(template)[0]
