"""Seams: the function through which a mechanism enters, and its answer without the mechanism.

`switched_off` puts the neutral answers in the place of the library's. `watched` leaves the answers
as they are and notes of which mechanisms they differ from the neutral ones.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from unittest.mock import patch

Answer = Callable[..., Any]
"""(the library's function, its arguments) -> what it answers without the mechanism."""


@dataclass(frozen=True)
class Seam:
    """One function of the library.

    Attributes:
        target: `module:attribute`, with dots within a class.
        neutral: Takes the function itself and its arguments (of methods the object first).
        differs: Whether an answer differs from the neutral one; compared with it where not given.
        watched: Another function whose answers tell, where this one's do not.
    """

    target: str
    neutral: Answer
    differs: Callable[[Any], bool] | None = None
    watched: str | None = None

    def off(self, called: Callable[[], None]) -> Any:
        """The patch that answers without the mechanism, and says that it was asked."""

        def answer(original: Answer, *args: Any, **kwargs: Any) -> Any:
            called()
            return self.neutral(original, *args, **kwargs)

        return _patch(self.target, answer)

    def watch(self, fired: Callable[[], None]) -> Any:
        """The patch that answers as the library does, and says where that makes a difference."""

        def answer(original: Answer, *args: Any, **kwargs: Any) -> Any:
            found = original(*args, **kwargs)
            if isinstance(found, Iterator):
                found = list(found)
            if self._is_different(found, original, args, kwargs):
                fired()
            return found

        return _patch(self.watched or self.target, answer)

    def _is_different(
        self, found: Any, original: Answer, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> bool:
        if self.differs is not None:
            return self.differs(found)
        return bool(found != self.neutral(original, *args, **kwargs))


def always(answer: Any) -> Answer:
    """A neutral answer that does not depend on the arguments."""
    return lambda original, *args, **kwargs: answer


def found_at(target: str) -> tuple[Any, str]:
    """The module or class that has the target, and the attribute's name.

    Raises:
        AttributeError, ModuleNotFoundError: There is no such function.
    """
    module, _, path = target.partition(":")
    *owners, name = path.split(".")
    owner: Any = import_module(module)
    for part in owners:
        owner = getattr(owner, part)
    inspect.getattr_static(owner, name)
    return owner, name


def _patch(target: str, answer: Answer) -> Any:
    """The patch of a function, method or property by one that gets the original first."""
    owner, name = found_at(target)
    static = inspect.getattr_static(owner, name)
    original: Any = static
    if isinstance(static, property):
        original = static.fget
    elif isinstance(static, classmethod | staticmethod):
        original = static.__func__

    def function(*args: Any, **kwargs: Any) -> Any:
        return answer(original, *args, **kwargs)

    is_descriptor = isinstance(static, property | classmethod | staticmethod)
    return patch.object(owner, name, type(static)(function) if is_descriptor else function)


@contextmanager
def switched_off(seams: Iterable[Seam]) -> Iterator[set[str]]:
    """Without a mechanism. Yields the targets that were asked so far."""
    asked: set[str] = set()
    with ExitStack() as stack:
        for seam in seams:
            stack.enter_context(seam.off(lambda seam=seam: asked.add(seam.target)))  # type: ignore[misc]
        yield asked


@contextmanager
def watched(seams: Mapping[str, Iterable[Seam]]) -> Iterator[set[str]]:
    """With all mechanisms. Yields the names of those that made a difference so far."""
    fired: set[str] = set()
    with ExitStack() as stack:
        for name, of_switch in seams.items():
            for seam in of_switch:
                stack.enter_context(seam.watch(lambda name=name: fired.add(name)))  # type: ignore[misc]
        yield fired
