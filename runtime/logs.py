"""Structured logs on standard error: one line per event, with its request, job and attempt."""

from __future__ import annotations

import logging
import sys
from contextlib import AbstractContextManager

import structlog

from runtime.settings import RuntimeSettings

_QUIET = ("celery", "kombu", "billiard", "alembic", "matplotlib", "httpx", "urllib3", "asyncio")
_LOGGED = ("request", "job", "attempt", "method", "path", "status", "seconds", "cut")
"""Extra fields of the standard library's log records that are written to the log."""


def set_up_logs(settings: RuntimeSettings) -> None:
    """Configures structlog and the standard library's logging to write to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_SHARED,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(settings.log_format),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.log_level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(root.level, logging.WARNING))
    structlog.configure(
        processors=[*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def log_context(**ids: object) -> AbstractContextManager[object]:
    """Context manager that adds ids to all lines logged in its block; None is omitted."""
    known = {name: value for name, value in ids.items() if value is not None}
    return structlog.contextvars.bound_contextvars(**known)


_SHARED: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(allow=_LOGGED),
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def _renderers(log_format: str) -> list[structlog.typing.Processor]:
    if log_format == "text" or (log_format == "auto" and sys.stderr.isatty()):
        return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
