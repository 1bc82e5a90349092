"""Strict parsing of JSON bodies (RFC 8259, RFC 7493); errors name line and character.

Repeated names in an object are refused, because parsers differ in which value they use.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from jiter import from_json
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool

from gcvae.errors import Problem
from service.errors import MediaTypeError, RequestError

BodyT = TypeVar("BodyT", bound=BaseModel)

JSON_TYPE = "application/json"
_PLACED = re.compile(r"(?s)(.*) at line (\d+) column (\d+)")
_EXPECTED = "JSON in UTF-8 without duplicate names in an object"
_TOO_DEEP = "recursion limit exceeded"
_MOST_DEEP = 200
"""How deeply the parser allows objects and lists to be nested."""


class JsonRoute(APIRoute):
    """FastAPI route that accepts only JSON bodies and parses them with `read_json`.

    Raises:
        MediaTypeError: The body has another media type.
        RequestError: The body is not valid JSON.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Returns FastAPI's handler of the route, with strict parsing of the body."""
        handle = super().get_route_handler()

        async def read_and_handle(request: Request) -> Response:
            if self.body_field is not None and has_body(request):
                require_json(request)
            return await handle(_JsonRequest(request.scope, request.receive))

        return read_and_handle


class _JsonRequest(Request):
    async def json(self) -> Any:
        """Returns the body, parsed by `read_json`."""
        return await run_in_threadpool(read_json, await self.body())


def has_body(request: Request) -> bool:
    """Returns whether the headers announce a request body."""
    length = request.headers.get("Content-Length", "0")
    return length != "0" or "Transfer-Encoding" in request.headers


def require_json(request: Request) -> None:
    """Checks that the request body has a JSON media type.

    Raises:
        MediaTypeError: Content-Type is missing or names another media type.
    """
    given = request.headers.get("Content-Type")
    if not is_json(given):
        raise MediaTypeError(given, (JSON_TYPE,))


def is_json(content_type: str | None) -> bool:
    """Returns whether a Content-Type header names JSON; None stands for a missing header.

    >>> is_json("application/json; charset=utf-8"), is_json("application/problem+json")
    (True, True)
    >>> is_json("text/csv"), is_json(None)
    (False, False)
    """
    essence = (content_type or "").split(";")[0].strip().lower()
    return essence == JSON_TYPE or (
        essence.startswith("application/") and essence.endswith("+json")
    )


def read_json(content: bytes, what: str = "the body", pointer: str = "") -> Any:
    """Parses JSON text in UTF-8 and returns its value.

    Args:
        what: Name of the JSON text in errors.
        pointer: JSON pointer to the text in the request; empty for the complete body.

    Raises:
        RequestError: The text is not JSON, is nested too deeply, has an invalid number, or repeats
            a name; the error shows line and character.
    """
    text = content.removeprefix(BOM_UTF8)
    try:
        return from_json(text, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        raise RequestError(_problem(str(error), what, pointer)) from error


def validated(content: bytes, body_type: type[BodyT]) -> BodyT:
    """Parses a JSON body and validates it as a pydantic model.

    Raises:
        RequestError: The body is not JSON.
        RequestValidationError: The body does not fit the pydantic model.
    """
    try:
        return body_type.model_validate(read_json(content))
    except ValidationError as error:
        found = [{**item, "loc": ("body", *item["loc"])} for item in error.errors()]
        raise RequestValidationError(found) from error


def _problem(found: str, what: str, pointer: str) -> Problem:
    """Converts the parser's message `found` to a problem with the line of the error. `what` is the
    name of the JSON text, `pointer` its location in the request (empty for the complete body)."""
    placed = _PLACED.fullmatch(found)
    assert placed is not None, "the reader names line and character of every fault"
    reason, line, character = placed.groups()
    if reason == _TOO_DEEP:
        message = f"{what} nests deeper than {_MOST_DEEP} levels at character {character}"
        expected = f"objects and lists nested at most {_MOST_DEEP} deep"
        return Problem(message, pointer or None, int(line), expected=expected)
    message = f"{what} cannot be read: {reason} at character {character}"
    return Problem(message, pointer or None, int(line), expected=_EXPECTED)
