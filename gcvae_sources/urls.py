"""Recognises URLs, and shows them without their secrets."""

from __future__ import annotations

import re


def is_url(text: str) -> bool:
    """Returns whether a text is a URL, such as `postgresql://HOST/NAME` or `s3://BUCKET/KEY`."""
    return "://" in text


def hidden_password(source: str) -> str:
    """Returns a URL without user, password and query; other texts unchanged.

    >>> hidden_password("postgresql://me:secret@db/shop?sslkey=x")
    'postgresql://db/shop'
    """
    if not is_url(source):
        return source
    return re.sub(r"//[^/]*@", "//", source.partition("?")[0])
