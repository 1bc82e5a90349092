"""JSON texts of requests: read strictly (RFC 8259, RFC 7493), each fault named with its place.

A name that stands twice in one object is refused: readers differ in which of the two they take.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, NoReturn

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool

from gcvae.errors import Problem
from service.errors import MediaTypeError, RequestError
from service.problems import escaped

JSON_TYPE = "application/json"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PLACED = re.compile(r"(?s)(.*) at line (\d+) column (\d+)")
_CONSTANTS = re.compile(r'"(?:[^"\\]|\\.)*"|(?P<constant>-?Infinity|NaN)')
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]')
_ANY: TypeAdapter[Any] = TypeAdapter(Any)
_DEPTH = 200  # of pydantic's reader


class JsonRoute(APIRoute):
    """A route whose body, where it takes one, is JSON.

    Raises:
        MediaTypeError: the body is of another kind.
        RequestError: it is no JSON.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The framework's handler, with bodies read here."""
        handle = super().get_route_handler()

        async def read_and_handle(request: Request) -> Response:
            if self.body_field is not None and has_body(request):
                require_json(request)
            return await handle(_JsonRequest(request.scope, request.receive))

        return read_and_handle


class _JsonRequest(Request):
    async def json(self) -> Any:
        return await run_in_threadpool(read_json, await self.body())


def has_body(request: Request) -> bool:
    """Whether one is announced: a request without one is told what it lacks."""
    length = request.headers.get("Content-Length", "0")
    return length != "0" or "Transfer-Encoding" in request.headers


def require_json(request: Request) -> None:
    """Let bodies of JSON pass.

    Raises:
        MediaTypeError: it is of another kind.
    """
    given = request.headers.get("Content-Type")
    if not is_json(given):
        raise MediaTypeError(given, (JSON_TYPE,))


def is_json(content_type: str | None) -> bool:
    """Whether a body of this kind is JSON.

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
    """The value of a JSON text.

    Args:
        what: the text is called in errors.
        pointer: of the text in the request.

    Raises:
        RequestError: it is no JSON, nests too deeply, has a number that is none, or repeats a
            name; with line and character.
    """
    text = _decoded(content.removeprefix(_BYTE_ORDER_MARK), what, pointer)
    try:
        _ANY.validate_json(text)  # for its limit of depth, and the places that it names
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except _ConstantError:
        _refuse_constant(text, what, pointer)
    except _RepeatedError:
        _refuse_repeated(text, pointer)
    except ValidationError as error:
        _refuse(error.errors()[0]["ctx"]["error"], what, pointer)


def _decoded(content: bytes, what: str, pointer: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        before = content[: error.start].decode()
        line, character = _place(before)
        message = f"{what} is not UTF-8 at character {character} (byte {content[error.start]:#04x})"
        raise RequestError(Problem(message, pointer or None, line, expected="UTF-8")) from error


def _refuse(found: str, what: str, pointer: str) -> NoReturn:
    placed = _PLACED.fullmatch(found)
    reason, line, column = placed.groups() if placed else (found, None, None)
    where = "" if column is None else f" at character {column}"
    message, expected = f"{what} is no JSON: {reason}{where}", "JSON"
    if reason == "recursion limit exceeded":
        message, expected = f"{what} nests too deeply{where}", f"at most {_DEPTH} levels"
    number = None if line is None else int(line)
    raise RequestError(Problem(message, pointer or None, number, expected=expected))


class _ConstantError(Exception):
    """NaN or an infinity, which are no JSON though Python reads and writes them."""


def _constant(_name: str) -> NoReturn:
    raise _ConstantError


def _refuse_constant(text: str, what: str, pointer: str) -> NoReturn:
    found = next(token for token in _CONSTANTS.finditer(text) if token["constant"])
    line, character = _place(text[: found.start()])
    message = f"{what} is no JSON: {found[0]} at character {character}"
    raise RequestError(Problem(message, pointer or None, line, expected="a number, or null"))


class _RepeatedError(Exception):
    """A name stands twice in an object."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepeatedError
    return found


@dataclass
class _Open:
    """An object or a list that is being read; `step` is where in it."""

    names: set[str] | None
    step: str | int = 0
    awaits_name: bool = field(init=False)

    def __post_init__(self) -> None:
        self.awaits_name = self.names is not None

    def go_on(self) -> None:
        """To the next member."""
        self.awaits_name = self.names is not None
        if isinstance(self.step, int):
            self.step += 1


def _refuse_repeated(text: str, pointer: str) -> NoReturn:
    """Read the text again, which is JSON, for the place of the first name that is repeated."""
    around: list[_Open] = []
    for token in _TOKENS.finditer(text):
        mark = token[0][0]
        if mark in "{[":
            around.append(_Open(set() if mark == "{" else None))
        elif mark in "}]":
            around.pop()
        elif mark == ",":
            around[-1].go_on()
        elif around and around[-1].awaits_name:
            inner, name = around[-1], json.loads(token[0])
            assert inner.names is not None, "lists have no names"
            inner.step, inner.awaits_name = name, False
            if name in inner.names:
                line, character = _place(text[: token.start()])
                place = pointer + "".join(f"/{escaped(part.step)}" for part in around)
                message = f"the name {name!r} stands twice in one object (character {character})"
                raise RequestError(Problem(message, place, line, expected="each name once"))
            inner.names.add(name)
    raise AssertionError("a name is repeated")


def _place(before: str) -> tuple[int, int]:
    """Line and character of what stands behind a text, both counted from 1."""
    return before.count("\n") + 1, len(before) - before.rfind("\n")
