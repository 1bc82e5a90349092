"""Exceptions of reading and writing tables in databases and files.

gcvae.errors.InputError
├── SourceError   the table cannot be read
└── TargetError   the table cannot be written; nothing was changed
"""

from __future__ import annotations

from gcvae.errors import InputError


class SourceError(InputError):
    """Raised if a database or file, or the table in it, cannot be read.

    The JSON pointer of a problem, if it has one, is `/table` or `/query`, a member of the request.
    """


class TargetError(InputError):
    """Raised if a table cannot be written; nothing was changed. The JSON pointer of a problem, if
    it has one, is `/table`, a member of the request."""
