"""Names that a request gives, in its query or in a form: each is known, and stands once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from gcvae.errors import Problem
from service.errors import RequestError


def refuse_names(given: Iterable[str], known: Collection[str], kind: str, prefix: str) -> None:
    """Let names pass that do something: a misspelled one would do nothing, nor would a second.

    Args:
        given: as they stand in the request.
        kind: what they are names of.
        prefix: what stands before a name in its place, as in `?seed`.

    Raises:
        RequestError: some are not known, and the known ones are listed; or stand more than once.
    """
    expected = f"one of {', '.join(known)}" if known else f"no {kind}s"
    problems = []
    for name, n in Counter(given).items():
        place = f"{prefix}{name}"
        if name not in known:
            problems.append(Problem(f"there is no such {kind}", place, expected=expected))
        elif n > 1:
            problems.append(Problem(f"the {kind} stands {n} times", place, expected="one value"))
    if problems:
        raise RequestError(*problems)
