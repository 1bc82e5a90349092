"""Exceptions of tables that are elsewhere.

gcvae.errors.InputError
├── SourceError   the table cannot be read
└── TargetError   the table cannot be written; nothing was changed
"""

from __future__ import annotations

from gcvae.errors import InputError


class SourceError(InputError):
    """Raised if a database or file, or the table in it, cannot be read.

    The pointers of the problems are `/table` and `/query`.
    """


class TargetError(InputError):
    """Raised if a table cannot be written; nothing was changed. Its JSON pointer names the member
    `/table` of the request."""
