"""Redaction of secret values: every occurrence, in any encoding, is replaced by `***`.

A value is found in these forms: as it is, escaped for JSON, Python, HTML and shells, percent-encoded, in base64 at any
offset of a text, and in hexadecimal. Every character of an occurrence is covered, also where occurrences overlap. A
value that was encrypted, hashed or split is not recognized.
"""

import base64
import html
import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, AnyStr
from urllib.parse import quote, quote_plus

import msgspec

MASK = "***"
LEAST = 4  # characters of a value; shorter values would match everywhere by chance
LEAST_LINE = 8  # characters of a line that is searched for by itself
WRAPS = (76, 64)  # characters at which base64 is broken into lines
LEAST_PIECE = 16  # characters of a line of base64 that is searched for by itself

Span = tuple[int, int]


def forms_of(value: str) -> frozenset[str]:
    """Return the forms in which a value may be written. Each line of at least LEAST_LINE characters is a form, too."""
    forms = {line.strip() for line in value.splitlines() if len(line.strip()) >= LEAST_LINE}
    for text in {value, value.strip()}:
        forms |= {text, *_escaped(text), *_in_urls(text), *_in_base64(text.encode()), *_in_hex(text.encode())}
    return frozenset(form for form in forms if len(form) >= LEAST)


def _escaped(text: str) -> Iterator[str]:
    for ascii_only in (True, False):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield from (once, once.replace("/", "\\/"), json.dumps(once, ensure_ascii=ascii_only)[1:-1])
    yield from (repr(text)[1:-1], repr(text.encode())[2:-1], html.escape(text), html.escape(text, quote=False))
    # Python escapes the value differently inside a text that has both kinds of quotes.
    yield repr(text + "'\"")[1:-1].removesuffix("\\'\"")
    yield repr(text.encode() + b"'\"")[2:-1].removesuffix("\\'\"")
    yield shlex.quote(text).removeprefix("'").removesuffix("'")


def _in_urls(text: str) -> Iterator[str]:
    ways = [quote(text, safe=safe) for safe in ("", "/", "!'()*", ";,/?:@&=+$!*'()#")]
    for way in (*ways, quote_plus(text)):
        yield way
        yield _lower_escapes(way)


def _lower_escapes(text: str) -> str:
    first, *others = text.split("%")
    return "%".join([first, *(part[:2].lower() + part[2:] for part in others)])


def _in_base64(data: bytes) -> Iterator[str]:
    """Yield the value in base64: alone, as a part of a longer text at each offset, and broken into lines.

    As a part of a longer text, only the characters that do not depend on the neighbouring bytes are yielded.
    """
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(data).decode()
        yield from (whole, whole.rstrip("="))
        for before in range(3):
            yield _certain(encode(bytes(before) + data).decode(), before, len(data))
    line = _certain(base64.b64encode(data).decode(), 0, len(data))
    for width in WRAPS:
        if len(line) > width:
            pieces = (line[at : at + width] for at in range(0, len(line), width))
            yield from (piece for piece in pieces if len(piece) >= LEAST_PIECE)


def _certain(encoded: str, before: int, size: int) -> str:
    """Return the characters of base64 that depend only on the `size` bytes of a value that follows `before` bytes."""
    return encoded[-(-before * 8 // 6) : (before + size) * 8 // 6]


def _in_hex(data: bytes) -> Iterator[str]:
    yield data.hex()
    yield data.hex().upper()


class Redactor:
    """A redactor of given values in texts, in JSON, and in streams."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = frozenset[str]().union(*(forms_of(value) for value in values))
        self._forms = tuple(sorted(forms))
        self._bytes = tuple(form.encode() for form in self._forms)
        self._in_json = tuple(msgspec.json.encode(form)[1:-1] for form in self._forms)

    def text(self, text: str) -> str:
        """Return the text with every occurrence covered, or the same object when there is none."""
        return _covered(text, spans_of(text, self._forms), MASK)

    def cut(self, text: str, *, at_start: bool = False, at_end: bool = True) -> str:
        """Cover occurrences in an excerpt of a text, and forms of which the excerpt has only the first or last part.

        `at_start` and `at_end` say at which sides the excerpt was cut off.
        """
        spans = spans_of(text, self._forms)
        if at_end and (begun := _open_from(text, self._forms)) < len(text):
            spans.append((begun, len(text)))
        if at_start and (ended := _open_until(text, self._forms)) > 0:
            spans.append((0, ended))
        return _covered(text, merge_spans(spans), MASK)

    def json(self, encoded: bytes) -> bytes:
        """Cover occurrences in the texts, names and numbers of a JSON value; the same object when there is none."""
        if b"\\" not in encoded and not any(form in encoded for form in self._in_json):
            return encoded  # with a backslash, a value may be escaped in other ways than in these forms
        try:
            value = msgspec.json.decode(encoded)
            hidden = self.tree(value)
        except RecursionError:
            return msgspec.json.encode(MASK)
        return encoded if hidden is value else msgspec.json.encode(hidden)

    def tree(self, value: Any) -> Any:
        """Cover occurrences in a decoded JSON value; the same object when there is none."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            members = {self.text(name): self.tree(member) for name, member in value.items()}
            same = len(members) == len(value) and all(members.get(name, _NONE) is value[name] for name in value)
            return value if same else members
        if isinstance(value, list):
            elements = [self.tree(element) for element in value]
            same = all(new is old for new, old in zip(elements, value, strict=True))
            return value if same else elements
        if isinstance(value, bool) or value is None:
            return value
        return value if not spans_of(str(value), self._forms) else MASK

    def data(self, data: bytes) -> bytes:
        """Return bytes with every occurrence covered."""
        return _covered(data, spans_of(data, self._bytes), MASK.encode())

    def stream(self) -> "RedactingStream":
        """Return a redactor for bytes that arrive in pieces."""
        return RedactingStream(self._bytes)


_NONE = object()


class RedactingStream:
    """A redactor of bytes that arrive in pieces, which may begin and end inside a secret value.

    Bytes at the end of a piece that may be the beginning of a form are held back until more bytes arrive.
    """

    def __init__(self, forms: Sequence[bytes]) -> None:
        self._forms = forms
        self.held = b""
        # The number of bytes at the start of `held` whose mask was already returned; None: the last byte had no mask.
        self._known: int | None = None

    def feed(self, piece: bytes) -> bytes:
        """Take the next piece, and return the redacted bytes that need not be held back any more."""
        data = self.held + piece
        return self._release(data, _open_from(data, self._forms))

    def end(self) -> bytes:
        """End the stream: redact and return the bytes that were held back."""
        return self._release(self.held, len(self.held))

    def _release(self, data: bytes, until: int) -> bytes:
        spans = spans_of(data, self._forms)
        known, mask = self._known, MASK.encode()
        if known is not None:
            spans = merge_spans([*spans, (0, known)])
        covered = [(start, min(end, until)) for start, end in spans if start < until]
        shown = _covered(data[:until], covered, mask)
        if known is not None and covered:
            shown = shown[len(mask) :]
        begun = [end for start, end in spans if start < until or (known is not None and start == 0)]
        rest = max(begun, default=-1) - until
        self.held, self._known = data[until:], rest if rest >= 0 else None
        return shown


def spans_of(text: AnyStr, forms: Sequence[AnyStr]) -> list[Span]:
    """Return the spans of a text that occurrences of forms cover. Occurrences that overlap or touch share a span."""
    found: list[Span] = []
    for form in forms:
        at = text.find(form)
        while at >= 0:
            found.append((at, at + len(form)))
            at = text.find(form, at + 1)
    return merge_spans(found) if len(found) > 1 else found


def merge_spans(spans: list[Span]) -> list[Span]:
    """Merge spans that overlap or touch."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _covered(text: AnyStr, spans: Sequence[Span], mask: AnyStr) -> AnyStr:
    if not spans:
        return text
    shown, at = text[:0], 0
    for start, end in spans:
        shown += text[at:start] + mask
        at = end
    return shown + text[at:]


def _open_from(text: AnyStr, forms: Sequence[AnyStr]) -> int:
    """Return the first position at which a form may begin that continues after the end of the text.

    Return the length of the text if there is no such position.
    """
    first = len(text)
    for form in forms:
        at = text.find(form[:1], max(0, len(text) - len(form) + 1), first)
        while at >= 0:
            if form.startswith(text[at:]):
                first = at
                break
            at = text.find(form[:1], at + 1, first)
    return first


def _open_until(text: str, forms: Sequence[str]) -> int:
    """Return the last position at which a form may end that began before the text; 0 if there is no such position."""
    backwards = [form[::-1] for form in forms]
    return len(text) - _open_from(text[::-1], backwards)
