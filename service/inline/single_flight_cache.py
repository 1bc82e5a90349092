"""Bounded cache that computes each value only once, also if several threads request it at once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class SingleFlightCache(Generic[KeyT, ValueT]):
    """Thread-safe cache of the `limit` most recently used values, each computed only once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._values: OrderedDict[KeyT, Future[ValueT]] = OrderedDict()

    def get(self, key: KeyT, make: Callable[[], ValueT]) -> ValueT:
        """Returns the value of `key`; if it is not cached, `make()` computes it.

        An exception of `make` is raised in all threads that wait for the value, and is not cached.
        """
        with self._lock:
            future = self._values.get(key)
            is_mine = future is None
            if future is None:
                future = self._values[key] = Future()
            self._values.move_to_end(key)
            while len(self._values) > self._limit:
                self._values.popitem(last=False)
        if is_mine:
            try:
                future.set_result(make())
            except BaseException as error:
                self.forget(key)
                future.set_exception(error)
        return future.result()

    def forget(self, key: KeyT) -> None:
        """Removes the value of `key` from the cache, if it is there."""
        with self._lock:
            self._values.pop(key, None)
