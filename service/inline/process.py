"""Main loop of an inline process, with its models, streams and answers.

The pool (`service/inline/pool.py`) sends one question at a time. Each comes back as an `Answer`,
also with an exception: exceptions of the library, the store and the catalog can not be pickled
directly, because their constructors take other arguments.
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
from runtime.priority import step_back_as_before
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
"""Fork server of all processes of this service."""


@dataclass(frozen=True)
class InlineContext:
    """Objects that inline work uses, with the lifetime of the process."""

    synthesizers: Synthesizers
    tally: Tally
    maps: SingleFlightCache[tuple[str, ...], DependencyMap] = field(
        default_factory=lambda: SingleFlightCache(_N_MAPS)
    )
    pictures: SingleFlightCache[tuple[str, ...], bytes] = field(
        default_factory=lambda: SingleFlightCache(_N_PICTURES)
    )
    """Maps and manifolds in the requested format."""
    streams: dict[str, Iterator[bytes]] = field(default_factory=dict)


Work = Callable[[InlineContext], Any]
"""Work of a process: a picklable function."""


@dataclass(frozen=True)
class Streamed:
    """A response in chunks; `summary` is known before they are generated."""

    chunks: Iterator[bytes]
    summary: dict[str, Any] = field(default_factory=dict)


def open_stream(
    context: InlineContext, stream_id: str, work: Callable[[InlineContext], Streamed]
) -> tuple[dict[str, Any], bytes | None]:
    """Starts a stream. Returns (summary, first chunk)."""
    streamed = work(context)
    context.streams[stream_id] = streamed.chunks
    return streamed.summary, next_chunk(context, stream_id)


def next_chunk(context: InlineContext, stream_id: str) -> bytes | None:
    """Returns the next chunk of a stream; None at its end, which closes it.

    Raises:
        ProcessDiedError: The process that started the stream has died.
    """
    if stream_id not in context.streams:
        raise ProcessDiedError
    chunk = next(context.streams[stream_id], None)
    if chunk is None:
        close_stream(context, stream_id)
    return chunk


def close_stream(context: InlineContext, stream_id: str) -> None:
    """Closes a stream and frees its objects. Does nothing if it is not open."""
    context.streams.pop(stream_id, None)


def forget_model(context: InlineContext, model_id: str) -> None:
    """Removes a deleted model from memory."""
    context.synthesizers.forget(model_id)


@dataclass(frozen=True)
class Raised:
    """An exception in picklable form."""

    error_type: type[BaseException]
    arguments: tuple[Any, ...]
    members: dict[str, Any]
    trace: str

    @classmethod
    def of(cls, error: Exception) -> Raised:
        """Converts an exception; one with members that can not be pickled becomes a
        RuntimeError.
        """
        trace = "".join(traceback.format_exception(error))
        raised = cls(type(error), error.args, vars(error), trace)
        try:
            pickle.loads(pickle.dumps(raised)).error()
        except Exception:  # `trace` has the original exception
            return cls(RuntimeError, (f"{type(error).__name__}: {error}",), {}, trace)
        return raised

    def error(self) -> BaseException:
        """Returns the exception; its cause has the traceback of the other process."""
        error = self.error_type.__new__(self.error_type, *self.arguments)
        vars(error).update(self.members)
        error.__cause__ = OtherProcessError(self.trace)
        return error


class OtherProcessError(Exception):
    """Traceback of an exception in another process, as text."""

    def __str__(self) -> str:
        """Returns the traceback on its own lines."""
        return f"\n{self.args[0]}"


@dataclass(frozen=True)
class Answer:
    """Result or exception of one call, and the counts since the last one."""

    value: Any
    raised: Raised | None
    tally: Tally


def serve(pipe: Connection, settings: ServiceSettings) -> None:
    """Main function of an inline process: answers calls until its pipe is closed.

    A call is (work, log context). None only checks that the process has started.
    """
    start_isolated(settings)
    step_back_as_before()  # resets the adaptive back-off between calls
    store = open_store(settings.store(), settings.store_access_key, settings.store_secret_key)
    tally = Tally()
    n_threads = settings.inline_torch_threads
    context = InlineContext(Synthesizers(store, settings.loaded_models, n_threads, tally), tally)

    def answer(question: tuple[Work, dict[str, Any]] | None) -> Answer | None:
        return None if question is None else _answer(context, *question)

    answer_all(pipe, answer)


def start_isolated(settings: ServiceSettings) -> None:
    """Sets up signals and logs in a child process, which the service ends itself."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    set_up_logs(settings)


def _answer(context: InlineContext, work: Work, ids: dict[str, Any]) -> Answer:
    """Calls the work with the request's ids in the log context."""
    with log_context(**ids):
        try:
            return Answer(work(context), None, context.tally.take())
        except Exception as error:
            return Answer(None, Raised.of(error), context.tally.take())
