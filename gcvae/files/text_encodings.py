"""Streams of a text file's bytes, uncompressed and in UTF-8, and errors that suggest an
encoding."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from typing import BinaryIO, Protocol

from gcvae.errors import Problem, TableError
from gcvae.files.other_files import refuse_other_file
from gcvae.schema.suggestions import nearest

CHUNK_BYTES = 1 << 20
MOST_SHOWN_CHARACTERS = 20
_UTF_8 = 'UTF-8, as spreadsheets save it under "CSV UTF-8"'
_EXAMPLES = "such as cp1252, latin-1 or utf-16"
_COMMON = (
    *("utf-8", "cp1252", "latin-1", "utf-16", "mac-roman", "cp850", "cp437", "cp1250", "cp1251"),
    *("koi8-r", "gb18030", "big5", "shift_jis", "euc_jp", "euc_kr"),
)
"""Most common encodings of text files, in the order in which they are suggested."""
_NO_FILE_ENCODINGS = frozenset(
    ["idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem"]
)
"""Codecs of Python that are not encodings of text files."""
_WORD = re.compile(rb"[^\s,;|\"]*[\x80-\xff][^\s,;|\"]*")


class Readable(Protocol):
    """Interface of a readable stream of bytes."""

    def read(self, n_bytes: int, /) -> bytes:
        """Returns at most `n_bytes` more bytes; b"" at the end."""
        ...


def checked_encoding(name: str | None, pointer: str | None = None) -> str | None:
    """Returns Python's canonical name of an encoding; None if it is UTF-8 or `name` is None.

    >>> checked_encoding("Windows-1252"), checked_encoding("UTF8")
    ('cp1252', None)

    Raises:
        TableError: The encoding does not exist; the error suggests one, and names the JSON pointer
            `pointer`, if it is not None.
    """
    if name is None:
        return None
    try:
        "".encode(name)  # codecs that are not for text, such as zip, raise an error
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        found = ""
    if not found or found.replace("-", "_") in _NO_FILE_ENCODINGS:
        near = nearest(name, _COMMON)
        expected = f"{near}, or another" if near else f"one such as {', '.join(_COMMON)}"
        raise TableError(Problem(f"there is no encoding {name!r}", pointer, expected=expected))
    return None if found in ("utf-8", "utf-8-sig") else found


class UnzippedFile:
    """Readable stream of the uncompressed content of a gzip file, with a limit on its size."""

    def __init__(self, file: BinaryIO, most_bytes: int | None = None) -> None:
        """Begins at the file's current position. `most_bytes` is the maximum number of uncompressed
        bytes; None for no limit."""
        self._plain = gzip.GzipFile(fileobj=file, mode="rb")  # the default is the file's mode
        self._most_bytes = most_bytes

    def read(self, n_bytes: int) -> bytes:
        """Returns at most `n_bytes` more bytes; b"" at the end.

        Raises:
            TableError: The file is truncated or damaged, or its content is too large.
        """
        try:
            data = self._plain.read(n_bytes)
        except EOFError:
            message = "the gzip file ends early: it is truncated; send the whole file"
            raise TableError(message) from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise TableError(f"the gzip file is damaged: {error}") from None
        if self._most_bytes is not None and self._plain.tell() > self._most_bytes:
            raise TableError(
                f"the gzip file holds more than {self._most_bytes / (1 << 30):g} GiB; if that is no"
                " mistake, unpack it and read the plain file"
            )
        return data


class DecodedFile:
    """Readable stream that converts a text file to UTF-8."""

    def __init__(self, file: Readable, encoding: str) -> None:
        """Begins at the file's current position; `encoding` is Python's name of its encoding."""
        self._file = file
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._held = b""
        self._n_bytes = 0  # decoded part of the file
        self._lines = 0
        self._is_at_end = False

    def read(self, n_bytes: int) -> bytes:
        """Returns at most `n_bytes` more bytes of UTF-8; b"" at the end.

        Raises:
            TableError: Bytes are not valid in the encoding; the error names the line.
        """
        while not self._held and not self._is_at_end:
            chunk = self._file.read(CHUNK_BYTES)
            if not self._n_bytes:
                refuse_other_file(chunk)
            self._is_at_end = not chunk
            self._held = self._decoded(chunk)
        taken, self._held = self._held[:n_bytes], self._held[n_bytes:]
        return taken

    def _decoded(self, chunk: bytes) -> bytes:
        try:
            text = self._decoder.decode(chunk, final=not chunk)
        except UnicodeError as error:
            raise self._refusal(chunk, error) from None
        self._n_bytes += len(chunk)
        self._lines += text.count("\n")
        return text.encode("utf-8", "surrogatepass")

    def _refusal(self, chunk: bytes, error: UnicodeError) -> TableError:
        """Returns the error about bytes that cannot be decoded, with their line."""
        data, start = chunk, 0
        if isinstance(error, UnicodeDecodeError):  # its object begins with bytes of earlier chunks
            data, start = error.object, error.start
        line = self._lines + data[:start].decode(self._encoding, "ignore").count("\n") + 1
        offset = self._n_bytes + len(chunk) - len(data) + start
        message = f"byte 0x{data[start]:02x} at offset {offset} is not {self._encoding}"
        expected = f"the encoding that the file is in, {_EXAMPLES}"
        return TableError(Problem(message, line=line, expected=expected))


def refuse_encoding(data: bytes, line: int, offset: int) -> None:
    """Checks that a part of a file is valid UTF-8. The part begins after `offset` bytes of the
    file, at the line `line`, counted from 1.

    Raises:
        TableError: The data is not valid UTF-8; the error names the first invalid byte.
    """
    try:
        data.decode()
    except UnicodeDecodeError as error:
        place = error.start
        message = f"byte 0x{data[place]:02x} at offset {offset + place} is not UTF-8"
        expected = f"{_UTF_8}; {proposed_encoding(data, place)}"
        line += data.count(b"\n", 0, place)
        raise TableError(Problem(message, line=line, expected=expected)) from None


def proposed_encoding(data: bytes, place: int) -> str:
    """Returns a phrase for errors that suggests an encoding for data that is not valid UTF-8.

    It is utf-16 if the data begins with a byte order mark of UTF-16, otherwise cp1252, the most
    common encoding besides UTF-8. For cp1252 the phrase also shows how the word around the invalid
    byte reads in this encoding.

    Args:
        data: A part of the file.
        place: Index of the invalid byte.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "name its encoding, utf-16"
    word = next(
        found[0] for found in _WORD.finditer(data, max(0, place - 200)) if found.end() > place
    )
    shown = word.decode("cp1252", "replace")[:MOST_SHOWN_CHARACTERS]
    others = "gb18030, shift_jis, euc_kr, cp1251 or mac-roman"
    return f"or name its encoding; with encoding cp1252 this reads {shown!r}; others are {others}"
