"""Pagination by cursor: query parameters and response bodies of all endpoints that list records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import Query
from pydantic import BaseModel

from catalog.pages import Order, Page
from service.bodies import PageBody

RecordT = TypeVar("RecordT")
BodyT = TypeVar("BodyT", bound=BaseModel)

Limit = Annotated[int, Query(ge=1, le=200, description="items per page")]
Cursor = Annotated[
    str | None, Query(max_length=200, description="`next_cursor` of the previous page")
]

Search = Annotated[
    str | None,
    Query(
        max_length=200,
        pattern=r"^[^\x00]*$",
        description="part of the name, or the beginning of the id",
    ),
]
Sort = Annotated[
    Order,
    Query(description="the cursor is valid only with the sort order that it was returned for"),
]


def page_body(page: Page[RecordT], body: Callable[[RecordT], BodyT]) -> PageBody[BodyT]:
    """Returns the response body for a page of records, each converted by `body`."""
    return PageBody(items=[body(item) for item in page.items], next_cursor=page.next_cursor)
