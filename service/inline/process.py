"""A process of inline work from within: its models, its streams, and how it answers.

The pool (`service/inline/pool.py`) asks one thing at a time. Whatever is asked comes back as an
`Answer`, errors too: those of the library, the store and the catalog do not survive pickling by
themselves, for what they are made of is not what they say.
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
"""What all processes of this service are forked from."""


@dataclass(frozen=True)
class Bench:
    """What inline work is done with; all of it lives as long as the process."""

    synthesizers: Synthesizers
    tally: Tally
    maps: SingleFlightCache[tuple[str, ...], DependencyMap] = field(
        default_factory=lambda: SingleFlightCache(_N_MAPS)
    )
    pictures: SingleFlightCache[tuple[str, ...], bytes] = field(
        default_factory=lambda: SingleFlightCache(_N_PICTURES)
    )
    """Maps and manifolds in the form that was asked for."""
    streams: dict[str, Iterator[bytes]] = field(default_factory=dict)


Work = Callable[[Bench], Any]
"""What can be asked of a process: a function of a module with its arguments, as it is pickled."""


@dataclass(frozen=True)
class Streamed:
    """An answer in chunks; `summary` is what is known of it before they are drawn."""

    chunks: Iterator[bytes]
    summary: dict[str, Any] = field(default_factory=dict)


def open_stream(
    bench: Bench, stream_id: str, work: Callable[[Bench], Streamed]
) -> tuple[dict[str, Any], bytes | None]:
    """The summary and the first chunk; the stream stays open."""
    streamed = work(bench)
    bench.streams[stream_id] = streamed.chunks
    return streamed.summary, next_chunk(bench, stream_id)


def next_chunk(bench: Bench, stream_id: str) -> bytes | None:
    """The next chunk of an open stream; None at its end, which closes it.

    Raises:
        ProcessDiedError: this process did not begin it: the one that did has died.
    """
    if stream_id not in bench.streams:
        raise ProcessDiedError
    chunk = next(bench.streams[stream_id], None)
    if chunk is None:
        close_stream(bench, stream_id)
    return chunk


def close_stream(bench: Bench, stream_id: str) -> None:
    """Forget a stream, and all it holds; a stream that is not open is no error."""
    bench.streams.pop(stream_id, None)


def forget_model(bench: Bench, model_id: str) -> None:
    """Drop a deleted model."""
    bench.synthesizers.forget(model_id)


@dataclass(frozen=True)
class Raised:
    """An exception on its way to another process."""

    error_type: type[BaseException]
    arguments: tuple[Any, ...]
    members: dict[str, Any]
    trace: str

    @classmethod
    def of(cls, error: Exception) -> Raised:
        """The exception, or what it says where it holds things that can not leave the process."""
        trace = "".join(traceback.format_exception(error))
        raised = cls(type(error), error.args, vars(error), trace)
        try:
            pickle.loads(pickle.dumps(raised)).error()
        except Exception:  # whatever hinders it, `trace` has all of it
            return cls(RuntimeError, (f"{type(error).__name__}: {error}",), {}, trace)
        return raised

    def error(self) -> BaseException:
        """The exception as it was raised; its cause says where, in the other process."""
        error = self.error_type.__new__(self.error_type, *self.arguments)
        vars(error).update(self.members)
        error.__cause__ = OtherProcessError(self.trace)
        return error


class OtherProcessError(Exception):
    """Where an exception was raised in another process: its traceback, as text."""

    def __str__(self) -> str:
        """The traceback, apart from the line that names this."""
        return f"\n{self.args[0]}"


@dataclass(frozen=True)
class Answer:
    """What became of a piece of work, and the figures since the last one."""

    value: Any
    raised: Raised | None
    tally: Tally


def serve(pipe: Connection, settings: ServiceSettings) -> None:
    """The life of the process: answer a piece of work and its request's ids, again and again.

    Of None nothing is to be done: it asks whether the process has begun.
    """
    begin_apart(settings)
    step_back_as_before()  # the work of one does not count against that of another
    store = open_store(settings.store(), settings.store_access_key, settings.store_secret_key)
    tally = Tally()
    n_threads = settings.inline_torch_threads
    bench = Bench(Synthesizers(store, settings.loaded_models, n_threads, tally), tally)

    def answer(question: tuple[Work, dict[str, Any]] | None) -> Answer | None:
        return None if question is None else _answer(bench, *question)

    answer_all(pipe, answer)


def begin_apart(settings: ServiceSettings) -> None:
    """Settle in a process of the service's, which the service ends by itself."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    set_up_logs(settings)


def _answer(bench: Bench, work: Work, ids: dict[str, Any]) -> Answer:
    """Do the work; lines that are logged meanwhile say the request's ids."""
    with log_context(**ids):
        try:
            return Answer(work(bench), None, bench.tally.take())
        except Exception as error:
            return Answer(None, Raised.of(error), bench.tally.take())
