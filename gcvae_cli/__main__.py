"""Runs the `gcvae` command; prints errors as one line for each problem and sets the exit code."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

from typer.exceptions import Abort, TyperException

from gcvae.errors import GcvaeError, InputError, SettingError
from gcvae_cli.app import command
from gcvae_cli.errors import CommandError
from gcvae_cli.signals import Ended, raised_signals
from gcvae_sources.errors import SourceError, TargetError

_INTERRUPTED = 130  # 128 + SIGINT, as in shells
_MOST_PROBLEMS = 12


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the `gcvae` command and returns its exit code.

    Args:
        arguments: Command-line arguments without the program name; None for those of the process.

    Returns:
        0 on success, 1 on failure, 2 for wrong usage, 128 plus the number of a signal that ended
        the command.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with raised_signals():
            return _run(given)
    except Ended as ended:
        return ended.exit_code


def _run(given: list[str]) -> int:
    try:
        return command(given or ["--help"], prog_name="gcvae", standalone_mode=False) or 0
    except TyperException as error:
        return _refuse(_usage_line(error), error.exit_code)
    except CommandError as error:
        return _refuse(str(error), error.exit_code)
    except SourceError as error:
        return _refuse(re.sub("^/", "--", str(error)), 2)
    except TargetError as error:
        return _refuse(re.sub("^/table", "--into", str(error)), 1)
    except InputError as error:
        return _refuse(_problem_lines(error), 2 if isinstance(error, SettingError) else 1)
    except GcvaeError as error:
        return _refuse(str(error), 1)
    except BrokenPipeError:
        return _close_broken_pipe()
    except OSError as error:
        return _refuse(_system_line(error), 1)
    except (Abort, KeyboardInterrupt):
        return _INTERRUPTED


def _refuse(found: str | list[str], exit_code: int) -> int:
    for line in [found] if isinstance(found, str) else found:
        print(f"gcvae: {' '.join(line.split())}", file=sys.stderr)
    return exit_code


def _problem_lines(error: InputError) -> list[str]:
    n_more = len(error.problems) - _MOST_PROBLEMS
    lines = [str(problem) for problem in error.problems[:_MOST_PROBLEMS]] or [str(error)]
    return [*lines, f"and {n_more} more problems"] if n_more > 0 else lines


def _usage_line(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    message = error.format_message().rstrip(".")
    return f"{message}; see `{context.command_path if context else 'gcvae'} --help`"


def _system_line(error: OSError) -> str:
    prefix = f"{error.filename}: " if error.filename is not None else ""
    return f"{prefix}{error.strerror or error}"


def _close_broken_pipe() -> int:
    # The pipe's reader has ended (`… | head`). Python would raise again when it flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


if __name__ == "__main__":
    sys.exit(main())
