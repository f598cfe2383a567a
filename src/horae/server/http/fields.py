"""Header fields (RFC 9110, 5 and RFC 9112, 5): a block of lines, and its meaning for a connection.

A field that two programs could read differently is refused: blanks around a name, a folded line, a line that does not
end with CR and LF, and a repeated field of which routes read only one value.
"""

import re
from typing import NoReturn

from horae.errors import BadInput
from horae.server.problems import PROPER_ID, HeadTooLong
from horae.server.reply import Header

MOST_FIELDS = 200
TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]"
VALUE = rb"[\t -~\x80-\xff]*"
HOST = re.compile(rb"(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])?(?::\d{1,5})?")
# Fields that may not be repeated, because a proxy may read the first of two and this server the last. X-Forwarded-For
# may be repeated, because haproxy adds a line.
ONCE = frozenset((
    b"authorization", b"content-encoding", b"content-length", b"content-type", b"cookie", b"expect", b"host",
    b"horae-namespace", b"idempotency-key", b"origin", b"transfer-encoding", b"traceparent", b"x-csrf-token",
    b"x-forwarded-host", b"x-forwarded-proto", b"x-request-id",
))  # fmt: skip

_FIELD = re.compile(rb"(" + TOKEN + rb"+):(" + VALUE + rb")\r\n")


class HeaderFields:
    """The headers of a request."""

    __slots__ = ("block", "chunked", "closes", "expects", "headers", "host", "id", "keeps", "length")

    def __init__(self, block: bytes) -> None:
        """Read lines that each end with CR and LF. Raises BadInput or HeadTooLong."""
        self.block, self.headers = block, read(block)
        first = dict(self.headers)
        if len(first) != len(self.headers):
            _check_repeated(self.headers)
            first[b"connection"] = b",".join(value for name, value in self.headers if name == b"connection")
        self.host = first.get(b"host")
        if self.host is not None and HOST.fullmatch(self.host) is None:
            refuse("Host is not the name of a server.", "Send the name and the port of this server as Host.")
        options = [option.strip(b" \t") for option in first.get(b"connection", b"").lower().split(b",")]
        self.closes, self.keeps = b"close" in options, b"keep-alive" in options
        self.expects = first.get(b"expect", b"").lower() == b"100-continue"
        given = first.get(b"x-request-id", b"")
        self.id = given if PROPER_ID.fullmatch(given) is not None else b""
        self.chunked = b"transfer-encoding" in first
        self.length = _length(first)


def read(block: bytes) -> list[Header]:
    """Return names in lower case, and values without surrounding blanks. Every byte must belong to a field."""
    found = _FIELD.findall(block)
    if len(found) > MOST_FIELDS:
        raise HeadTooLong("The request has too many headers.", f"Send at most {MOST_FIELDS} of them.")
    size = 3 * len(found)
    for name, value in found:
        size += len(name) + len(value)
    if size != len(block):
        refuse("A header is malformed.", "Send `Name: value`, each on one line, without control characters.")
    return [(name.lower(), value.strip(b" \t")) for name, value in found]


def refuse(detail: str, remedy: str) -> NoReturn:
    """Refuse bytes that are not HTTP/1.1."""
    raise BadInput(detail, remedy)


def _length(first: dict[bytes, bytes]) -> int:
    length, coding = first.get(b"content-length"), first.get(b"transfer-encoding")
    if coding is not None and (length is not None or coding.lower() != b"chunked"):
        refuse("The length of the body is ambiguous.", "Send Content-Length, or `Transfer-Encoding: chunked` alone.")
    if length is None:
        return 0
    if not length.isdigit() or len(length) > 18:
        refuse("Content-Length is not a number.", "Send the number of bytes of the body.")
    return int(length)


def _check_repeated(headers: list[Header]) -> None:
    seen: set[bytes] = set()
    for name, _ in headers:
        if name in seen and name in ONCE:
            refuse(f"The request has the header {name.decode('latin-1')} twice.", "Send it once.")
        seen.add(name)
