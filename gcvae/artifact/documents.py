"""JSON documents of frozen dataclasses: a document has one member for each field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

import numpy as np


class JsonFields:
    """Base class of dataclasses whose fields are the members of a JSON object.

    A field is a number, a string, a boolean, an array, None, another such dataclass, or a tuple of
    these.
    """

    _given: ClassVar[tuple[str, ...]] = ()
    """Fields that the document does not contain; `_of_document` receives them as arguments."""

    def to_json(self) -> dict[str, Any]:
        """Returns the object as a JSON document, which `from_json` reads."""
        names = (field.name for field in fields(self))  # type: ignore[arg-type]
        return {name: _plain(getattr(self, name)) for name in names if name not in self._given}

    @classmethod
    def _of_document(cls, document: Mapping[str, Any], **given: Any) -> Self:
        kinds: dict[str, Any] = _kinds(cls)  # type: ignore[arg-type]
        own = {name: kind for name, kind in kinds.items() if name not in cls._given}
        return cls(**{name: _typed(document[name], kind) for name, kind in own.items()}, **given)


class Document(JsonFields):
    """Base class of dataclasses all of whose fields are members of the JSON object."""

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Restores the object from the JSON document that `to_json` returned.

        Raises:
            KeyError, TypeError, ValueError: A member is missing or invalid.
        """
        return cls._of_document(document)


@cache
def _kinds(cls: Any) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in fields(cls)}


def _plain(value: Any) -> Any:
    if isinstance(value, JsonFields):
        return value.to_json()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


def _typed(value: Any, kind: Any) -> Any:
    """Converts a value of a JSON document to the type of its field."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return None if value is None else _typed(value, parts[0])
    if origin is np.ndarray:
        return np.asarray(value, get_args(parts[1])[0])
    if origin is tuple:
        each = parts[:1] * len(value) if parts[-1] is ... else parts
        return tuple(_typed(part, own) for part, own in zip(value, each, strict=True))
    return kind.from_json(value) if isinstance(kind, type) and issubclass(kind, Document) else value
