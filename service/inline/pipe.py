"""A process that answers over a pipe, whose other end nobody but it holds.

So its end is seen in the middle of an answer, too. `ProcessPoolExecutor` keeps the writing end open
in the process that reads: it waits for ever for the rest of an answer whose writer was killed.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from typing import Any

Context = ForkServerContext | SpawnContext


class PipedProcess:
    """A process that runs `serve(its end of the pipe, *arguments)`.

    Attributes:
        pid: of the process.
    """

    def __init__(self, context: Context, serve: Callable[..., None], *arguments: Any) -> None:
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, *arguments))
        with theirs:
            self._process.start()
        assert self._process.pid is not None, "it is started"
        self.pid: int = self._process.pid
        atexit.register(self.kill)  # Python waits at its end for those that live

    @property
    def is_alive(self) -> bool:
        """Whether the process, of which nothing is asked just now, has not ended.

        Its end of the pipe shows it first: there is nothing to be read but that it is closed.
        """
        return not self._pipe.poll()

    def ask(self, question: Any) -> Any:
        """The process's answer. It waits for it, and one thread may ask at a time.

        Raises:
            EOFError: the process ended before it had answered.
        """
        try:
            self._pipe.send(question)
            return self._pipe.recv()
        except OSError:  # in the middle of a question or an answer
            raise EOFError from None

    def kill(self) -> None:
        """End the process, and wait until it has; whoever asks it gets an EOFError."""
        self._process.kill()
        self._process.join()

    def close(self) -> None:
        """Kill it and free what it held here. Nobody asks it any more."""
        atexit.unregister(self.kill)
        self.kill()
        self._process.close()
        self._pipe.close()


def answer_all(pipe: Connection, answer: Callable[[Any], Any]) -> None:
    """Within such a process: answer one question after the other, until nobody is left to ask."""
    while True:
        try:
            question = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send(answer(question))
