"""Texts in other encodings than UTF-8: read as UTF-8 chunk by chunk, and guessed at for errors."""

from __future__ import annotations

import codecs
import re
from typing import Protocol

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
"""What files are most often in."""
_FAMILIES = {
    **{"latin": "latin-1", "iso": "latin-1", "windows": "cp1252", "win": "cp1252"},
    **{"ansi": "cp1252", "mac": "mac-roman", "gbk": "gb18030"},
}
"""By the letters that a name begins with: the member of such a family that most files are in."""
_NO_FILE_ENCODINGS = frozenset(
    ["idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem"]
)
"""Of Python: they encode texts, but no text file."""
_LETTERS = re.compile(rb"[A-Za-z\x80-\xff]{2,}")  # a lone byte may be a sign, such as €
_WORD = re.compile(rb"[^\s,;|\"]*[\x80-\xff][^\s,;|\"]*")


class Readable(Protocol):
    """What bytes are read from."""

    def read(self, n_bytes: int, /) -> bytes:
        """At most n_bytes more; none at the end."""
        ...


def check_encoding(name: str) -> str | None:
    """The encoding's own name; None for UTF-8, which is read as it is.

    >>> check_encoding("Windows-1252"), check_encoding("UTF8")
    ('cp1252', None)

    Raises:
        ValueError: There is no such encoding; the text says what would be right.
    """
    try:
        "".encode(name)  # which what is no encoding of texts, such as zip, refuses
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        found = ""
    if not found or found.replace("-", "_") in _NO_FILE_ENCODINGS:
        raise ValueError(_meant(name))
    return None if found in ("utf-8", "utf-8-sig") else found


def _meant(name: str) -> str:
    """The encoding that a name was probably to be; the common ones where it is like none."""
    letters = re.match("[a-z]*", name.strip().lower())
    near = _FAMILIES.get(letters[0] if letters else "") or nearest(name, _COMMON)
    return f"{near}, or another" if near else f"the name of one, such as {', '.join(_COMMON)}"


def checked_encoding(name: str | None, pointer: str | None = None) -> str | None:
    """The encoding's own name; None where none is given, and for UTF-8.

    Raises:
        TableError: There is no such encoding; the problem has the pointer.
    """
    try:
        return None if name is None else check_encoding(name)
    except ValueError as error:
        message = f"there is no encoding {name!r}"
        raise TableError(Problem(message, pointer, expected=str(error))) from None


class DecodedFile:
    """A text file of another encoding, read as UTF-8: in memory a chunk at a time."""

    def __init__(self, file: Readable, encoding: str) -> None:
        """Begins where the file stands; `encoding` is a name of Python's."""
        self._file = file
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._held = b""
        self._n_bytes = 0  # of the file, decoded
        self._lines = 0
        self._is_at_end = False

    def read(self, n_bytes: int) -> bytes:
        """At most n_bytes more of the text in UTF-8; none at the end.

        Raises:
            TableError: Bytes are none of the encoding; the problem names the line.
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
        state = self._decoder.getstate()
        try:
            text = self._decoder.decode(chunk, final=not chunk)
        except UnicodeError as error:
            raise self._refusal(chunk, state, error) from None
        self._n_bytes += len(chunk)
        self._lines += text.count("\n")
        return text.encode("utf-8", "surrogatepass")

    def _refusal(self, chunk: bytes, state: tuple[bytes, int], error: UnicodeError) -> TableError:
        """What is said of bytes that can not be decoded: what is before them has lines."""
        before = len(state[0])  # bytes of earlier chunks that were held back
        start = max(error.start - before, 0) if isinstance(error, UnicodeDecodeError) else 0
        self._decoder.setstate(state)
        line = self._lines + self._decoder.decode(chunk[:start]).count("\n") + 1
        offset = self._n_bytes + start
        what = f"byte 0x{chunk[start]:02x}" if chunk else "the last byte"
        message = f"{what} at offset {offset} is not {self._encoding}"
        expected = f"the encoding that the file is in, {_EXAMPLES}"
        return TableError(Problem(message, line=line, expected=expected))


def refuse_encoding(data: bytes, line: int, offset: int) -> None:
    """Lets text in UTF-8 pass.

    Args:
        data: Of a file.
        line, offset: At which it begins there.

    Raises:
        TableError: It is none; the problem names the first byte.
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
    """What a text that is not UTF-8 may be in, and how it would read there.

    Western texts have single bytes beyond ASCII among letters; other scripts have most of theirs
    there, and which of their encodings it is, only who wrote the file can say.

    Args:
        data: The text.
        place: Of the first byte that is not UTF-8.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "name its encoding, utf-16"
    part = data[max(0, place - 200) : place + 10_000]
    words = [word for word in _LETTERS.findall(part) if not word.isascii()]
    n_beyond = sum(byte > 0x7F for word in words for byte in word)
    if n_beyond * 2 > sum(map(len, words)):
        return "or name its encoding, such as gb18030, shift_jis, euc_kr or cp1251"
    word = next(
        found[0] for found in _WORD.finditer(data, max(0, place - 200)) if found.end() > place
    )
    try:
        shown = word.decode("cp1252")[:MOST_SHOWN_CHARACTERS]
    except UnicodeDecodeError:
        return "or name its encoding, such as cp850, mac-roman or latin-1"
    return f"or name its encoding; with encoding cp1252 this reads {shown!r}"


def looks_like_utf_16(data: bytes) -> str | None:
    """The encoding of a text that has a NUL in nearly every pair of bytes at its beginning."""
    head = data[:1000]
    pairs = len(head) // 2
    for first, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        if pairs >= 2 and head[first::2].count(0) > 0.9 * pairs > 10 * head[1 - first :: 2].count(
            0
        ):
            return name
    return None
