"""Main loop of a child process that runs models for the API.

The pool (`service/inline/pool.py`) sends one call at a time and gets an `Answer` to each, with the
result or the exception. Exceptions of the library, the store and the catalog cannot be pickled
directly, because their constructors take other arguments than `Exception.args`.
"""

from __future__ import annotations

import pickle
import signal
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from models_store import open_store
from runtime.logs import log_context, set_up_logs
from runtime.priority import lower_session_priority
from runtime.processes import ForkServer, answer_all
from service.errors import ProcessDiedError
from service.inline.single_flight_cache import SingleFlightCache
from service.inline.synthesizers import Synthesizers
from service.settings import ServiceSettings
from service.tallies import Tally

if TYPE_CHECKING:
    from gcvae.dependence.maps import DependencyMap

_N_MAPS, _N_PICTURES = 16, 64

FORK_SERVER = ForkServer("service.inline.imports")
"""Process from which all child processes of the service are forked, with slow modules imported."""


@dataclass(frozen=True)
class InlineContext:
    """Objects that last as long as the child process and are passed to each call.

    Attributes:
        synthesizers: Models that are loaded in memory.
        tally: Counters for the API's metrics.
        maps: Computed dependency maps (matrices of pairwise dependence of columns), by model, kind
            and seed.
        pictures: Dependency maps and manifolds (the decoder's output on a grid of latent vectors)
            as files, by model, kind, format and other parameters.
        streams: Unfinished streamed responses, by stream id.
    """

    synthesizers: Synthesizers
    tally: Tally
    maps: SingleFlightCache[tuple[str, ...], DependencyMap] = field(
        default_factory=lambda: SingleFlightCache(_N_MAPS)
    )
    pictures: SingleFlightCache[tuple[str, ...], bytes] = field(
        default_factory=lambda: SingleFlightCache(_N_PICTURES)
    )
    """Dependency maps and manifolds, encoded in a response format."""
    streams: dict[str, Iterator[bytes]] = field(default_factory=dict)


Work = Callable[[InlineContext], Any]
"""Picklable function that is called in a child process."""


@dataclass(frozen=True)
class Streamed:
    """A response body that is generated in chunks, and facts for the response headers.

    Attributes:
        summary: Facts that are known before the chunks are generated, by name.
    """

    chunks: Iterator[bytes]
    summary: dict[str, Any] = field(default_factory=dict)


def open_stream(
    context: InlineContext, stream_id: str, work: Callable[[InlineContext], Streamed]
) -> tuple[dict[str, Any], bytes | None]:
    """Calls `work` and keeps the stream that it returns. Returns (summary, first chunk).

    Args:
        stream_id: Id by which `next_chunk` and `close_stream` find the stream.
    """
    streamed = work(context)
    context.streams[stream_id] = streamed.chunks
    return streamed.summary, next_chunk(context, stream_id)


def next_chunk(context: InlineContext, stream_id: str) -> bytes | None:
    """Returns the next chunk of a stream; None at its end, where the stream is closed.

    Raises:
        ProcessDiedError: The process that started the stream has died; this process replaces it.
    """
    if stream_id not in context.streams:
        raise ProcessDiedError
    chunk = next(context.streams[stream_id], None)
    if chunk is None:
        close_stream(context, stream_id)
    return chunk


def close_stream(context: InlineContext, stream_id: str) -> None:
    """Closes a stream and frees its objects. Does nothing if the stream is not open."""
    context.streams.pop(stream_id, None)


def forget_model(context: InlineContext, model_id: str) -> None:
    """Removes a deleted model from the memory of this process."""
    context.synthesizers.forget(model_id)


@dataclass(frozen=True)
class Raised:
    """An exception in a form that can be pickled and sent to another process.

    Attributes:
        error_type: Class of the exception.
        arguments: `args` of the exception.
        members: Attributes of the exception.
        trace: Traceback as a string.
    """

    error_type: type[BaseException]
    arguments: tuple[Any, ...]
    members: dict[str, Any]
    trace: str

    @classmethod
    def of(cls, error: Exception) -> Raised:
        """Converts an exception. If it cannot be pickled, a RuntimeError replaces it.

        The message of the RuntimeError contains the class and message of the exception.
        """
        trace = "".join(traceback.format_exception(error))
        raised = cls(type(error), error.args, vars(error), trace)
        try:
            pickle.loads(pickle.dumps(raised)).error()
        except Exception:  # `trace` has the original exception
            return cls(RuntimeError, (f"{type(error).__name__}: {error}",), {}, trace)
        return raised

    def error(self) -> BaseException:
        """Returns the exception; its `__cause__` is the traceback of the process that raised it."""
        error = self.error_type.__new__(self.error_type, *self.arguments)
        vars(error).update(self.members)
        error.__cause__ = OtherProcessError(self.trace)
        return error


class OtherProcessError(Exception):
    """The `__cause__` of an exception of another process: that process's traceback as text."""

    def __str__(self) -> str:
        """Returns the traceback, starting on a new line."""
        return f"\n{self.args[0]}"


@dataclass(frozen=True)
class Answer:
    """A child process's answer to one call.

    Attributes:
        value: Result of the call; None if it raised an exception.
        raised: The exception; None if there was none.
        tally: Counters for the metrics since the process's previous answer.
    """

    value: Any
    raised: Raised | None
    tally: Tally


def serve(pipe: Connection, settings: ServiceSettings) -> None:
    """Main function of a child process: answers calls until the other end of its pipe is closed.

    A call is (work, ids for log lines), or None to check that the process has started.
    """
    start_isolated(settings)
    lower_session_priority()  # low scheduling priority, like the process that it was forked from
    store = open_store(settings.store(), settings.store_access_key, settings.store_secret_key)
    tally = Tally()
    n_threads = settings.inline_torch_threads
    context = InlineContext(Synthesizers(store, settings.loaded_models, n_threads, tally), tally)

    def answer(question: tuple[Work, dict[str, Any]] | None) -> Answer | None:
        return None if question is None else _answer(context, *question)

    answer_all(pipe, answer)


def start_isolated(settings: ServiceSettings) -> None:
    """Sets up logs in a child process, and makes the process ignore stop signals.

    The signals are ignored because the service itself ends its child processes.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    set_up_logs(settings)


def _answer(context: InlineContext, work: Work, ids: dict[str, Any]) -> Answer:
    with log_context(**ids):
        try:
            return Answer(work(context), None, context.tally.take())
        except Exception as error:
            return Answer(None, Raised.of(error), context.tally.take())
