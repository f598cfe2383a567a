"""HTTP/1.1 framing (RFC 9112): finds requests and their bodies in the bytes of a connection.

If two parsers read the same bytes differently, a client can hide a request in another one. So this parser is strict:
every line ends with CR and LF, a body has one length, and a target agrees with Host. Bytes are counted before they are
stored, and trailers are dropped.
"""

import re

from horae.server.http.fields import HOST, TOKEN, VALUE, HeaderFields, read, refuse
from horae.server.http.request import HttpRequest
from horae.server.problems import HeadTooLong

MOST_HEAD = 64 * 1024  # bytes of a request's line and headers
MOST_KEPT = 4 * 1024  # bytes of headers that are kept while the client is silent, as its next request may repeat them
MOST_TRAILERS = 8 * 1024  # bytes
MOST_CHUNK_LINE = 256  # bytes of a chunk's size and extensions
MOST_EXCESS = 16 * 1024  # bytes by which the framing of chunks may exceed its allowance (see `_chunk`)
CRLF = b"\r\n"

# The next part of a request: its head, its content, a chunk's size, a chunk's content, trailers.
HEAD, CONTENT, FIRST_CHUNK, CHUNK, NEXT_CHUNK, TRAILERS = range(6)

_LINE = re.compile(rb"(" + TOKEN + rb"{1,32}) ([!\"$-~]+) HTTP/(\d\.\d)\r\n")
_ABSOLUTE = re.compile(rb"(?i:https?)://([^/?@]+)(/[^?]*)?(\?.*)?")
_EXTENSION = rb";" + TOKEN + rb"+(?:=(?:" + TOKEN + rb'+|"[\t !#-\[\]-~\x80-\xff]*"))?'
_SIZE = rb"([0-9A-Fa-f]{1,16})(?:" + _EXTENSION + rb")*\r\n"
_SIZES = {FIRST_CHUNK: re.compile(_SIZE), NEXT_CHUNK: re.compile(CRLF + _SIZE)}
# The same first lines and sizes, of which only the beginning has arrived.
_BEGUN_LINE = re.compile(rb"\r?\Z|(?:\r\n)?" + TOKEN + rb"{0,32}(?: |\Z)")
_BEGUN_SIZE = rb"[0-9A-Fa-f]{0,16}(?:;" + VALUE + rb")?\r?\Z"
_BEGUN_SIZES = {FIRST_CHUNK: re.compile(_BEGUN_SIZE), NEXT_CHUNK: re.compile(rb"\r?\Z|\r\n" + _BEGUN_SIZE)}
_STRAY = re.compile(rb"(?<!\r)\n|\r(?!\n|\Z)|\0")


class RequestFraming:
    """Splits the bytes of one connection into requests and pieces of their bodies."""

    __slots__ = ("_at", "_bytes", "_excess", "_fields", "_left", "_request", "_searched", "_stage")

    def __init__(self) -> None:
        self._bytes, self._at, self._searched = b"", 0, 0
        self._stage, self._left, self._excess = HEAD, 0, 0
        self._request, self._fields = HttpRequest(), HeaderFields(b"")

    @property
    def midway(self) -> bool:
        """Return whether a request is incomplete."""
        return self._stage != HEAD or self._at < len(self._bytes)

    def feed(self, data: bytes) -> None:
        """Add bytes. Bytes that were fed before and not taken yet are kept."""
        self._bytes = self._bytes[self._at :] + data if self._at < len(self._bytes) else data
        self._searched = max(self._searched - self._at, 0)
        self._at = 0

    def take(self) -> HttpRequest | bytes | None:
        """Return the next request, or the next piece of its body; None if more bytes are needed.

        A request includes its body if that has arrived already. It is `whole` once its last piece, which may be empty,
        is taken. Raises BadInput or HeadTooLong for anything but HTTP/1.1 and 1.0; then nothing more can be taken.
        """
        stage = self._stage
        if stage == HEAD and self._at < len(self._bytes):
            return self._head()
        if stage == HEAD:
            self._let_go()
            return None
        if stage in (CONTENT, CHUNK):
            return self._content()
        return self._trailers() if stage == TRAILERS else self._chunk()

    def _let_go(self) -> None:
        """Release large buffers while the client is silent."""
        self._bytes, self._at = b"", 0
        if len(self._fields.block) > MOST_KEPT:
            self._request, self._fields = HttpRequest(), HeaderFields(b"")

    def _head(self) -> HttpRequest | None:
        """Read a request's line and headers. One empty line before it is ignored (RFC 9112, 2.2)."""
        begin = self._at + len(CRLF) if self._bytes.startswith(CRLF, self._at) else self._at
        end = self._find_end(begin, MOST_HEAD, "headers")
        if end is None:
            if _BEGUN_LINE.match(self._bytes, self._at) is None:
                refuse("This is not HTTP/1.1.", "Begin a request with its method and target.")
            return None
        line = _LINE.match(self._bytes, begin, end)
        if line is None:
            refuse("The request's first line is malformed.", "Send `GET /path HTTP/1.1`, the path percent-encoded.")
        block = self._bytes[line.end() : end]
        if block != self._fields.block:  # clients repeat their headers
            self._fields = HeaderFields(block)
        self._at = end + len(CRLF)
        self._request = self._begin(self._fields, *line.groups())
        self._request.head = self._at - begin
        if self._stage == CONTENT and len(self._bytes) - self._at >= self._left and (body := self._content()):
            self._request.add(body)  # most bodies arrive with their heads
        return self._request

    def _begin(self, fields: HeaderFields, method: bytes, target: bytes, version: bytes) -> HttpRequest:
        """Create a request, and find out where its body ends."""
        request = HttpRequest()
        request.method, request.headers, request.modern = method, fields.headers, version == b"1.1"
        request.id = fields.id
        if not request.modern and version != b"1.0":
            refuse(f"This server does not support HTTP/{version.decode()}.", "Send HTTP/1.1.")
        if request.modern and fields.host is None:
            refuse("The request has no Host.", "Send the name and the port of this server as Host.")
        if fields.chunked and not request.modern:
            refuse("HTTP/1.0 has no chunks.", "Send Content-Length, or HTTP/1.1.")
        request.target = target if target.startswith(b"/") else _path_of(target, method, fields.host)
        request.keep = not fields.closes and (request.modern or fields.keeps)
        request.expects = request.modern and fields.expects
        self._left, self._excess, self._searched = fields.length, 0, 0
        self._stage = FIRST_CHUNK if fields.chunked else CONTENT if fields.length else HEAD
        request.whole = self._stage == HEAD
        return request

    def _content(self) -> bytes | None:
        piece = self._bytes[self._at : self._at + self._left]
        if not piece:
            return None
        self._at += len(piece)
        self._left -= len(piece)
        if not self._left:
            if self._stage == CONTENT:
                self._end()
            else:
                self._stage = NEXT_CHUNK
        return piece

    def _chunk(self) -> bytes | None:
        """Read a chunk's size, and the part of its content that has arrived. Extensions are ignored.

        A chunk has an allowance of 16 bytes plus twice its content for framing, as in Go's net/http: a body of small
        chunks passes, a body of extensions does not.
        """
        size = _SIZES[self._stage].match(self._bytes, self._at)
        if size is None:
            fits = len(self._bytes) - self._at <= MOST_CHUNK_LINE
            if not fits or _BEGUN_SIZES[self._stage].match(self._bytes, self._at) is None:
                refuse("The size of a chunk is malformed.", "Send its size in hexadecimal and a line break.")
            return None
        line, self._left = size.end() - self._at, int(size[1], 16)
        self._excess = max(0, self._excess + line - 16 - 2 * self._left)
        if line > MOST_CHUNK_LINE or self._excess > MOST_EXCESS:
            refuse("The body's chunks are mostly framing.", "Send larger chunks without extensions.")
        self._at = size.end()
        self._stage = CHUNK if self._left else TRAILERS
        return self._content() if self._left else self._trailers()

    def _trailers(self) -> bytes | None:
        """Read and drop trailers. RFC 9110, 6.5.1 forbids their use as headers, and no route needs them."""
        if not self._bytes.startswith(CRLF, self._at):
            end = self._find_end(self._at, MOST_TRAILERS, "trailers")
            if end is None:
                return None
            read(self._bytes[self._at : end])
            self._at = end
        self._at += len(CRLF)
        self._end()
        return b""

    def _end(self) -> None:
        self._request.whole = True
        self._stage, self._searched = HEAD, 0

    def _find_end(self, begin: int, most: int, what: str) -> int | None:
        """Return the position of the empty line that ends a section, within its limit; None if it has not arrived."""
        end = self._bytes.find(b"\r\n\r\n", max(begin, self._searched))
        if (len(self._bytes) if end < 0 else end + 4) - begin > most:
            raise HeadTooLong(f"The request's {what} are too long.", f"Send at most {most} bytes of them.")
        if end >= 0:
            return end + 2
        if _STRAY.search(self._bytes, max(begin, self._searched)) is not None:
            refuse("A line does not end with CR and LF.", "End each line of a head with both.")
        self._searched = max(begin, len(self._bytes) - 3)
        return None


def _path_of(target: bytes, method: bytes, host: bytes | None) -> bytes:
    """Return the path and query of a target with a scheme and a server. The server must agree with Host."""
    if target == b"*" and method == b"OPTIONS":
        return target
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None or method == b"CONNECT":
        refuse("The request's target is not a path of this server.", "Send a path, such as /api/v1/jobs.")
    authority, path, query = absolute.groups(b"")
    if HOST.fullmatch(authority) is None or (host is not None and host.lower() != authority.lower()):
        refuse("The request's target and its Host differ.", "Send a path as the target, and the server as Host.")
    return (path or b"/") + query
