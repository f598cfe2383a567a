"""Requests read from bytes: the same in any pieces, and never more than another parser accepts."""

from itertools import pairwise
from typing import Any

import h11
import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.errors import HoraeError
from horae.server.http.fields import MOST_FIELDS
from horae.server.http.framing import MOST_HEAD, MOST_TRAILERS, RequestFraming
from horae.server.http.request import HttpRequest

Read = tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]  # method, target, headers, body


def take_all(framing: RequestFraming, into: list[HttpRequest]) -> None:
    while (part := framing.take()) is not None:
        if isinstance(part, HttpRequest):
            into.append(part)
        else:
            into[-1].add(part)


def requests(data: bytes, cuts: list[int] | None = None) -> tuple[list[Read], bool, bool]:
    """Feed bytes in pieces; return the whole requests, whether more is to come, and whether the bytes were refused."""
    framing, found = RequestFraming(), list[HttpRequest]()
    edges = [0, *sorted(cuts or []), len(data)]
    refused = False
    try:
        for begin, end in pairwise(edges):
            if begin < end:
                framing.feed(data[begin:end])
                take_all(framing, found)
    except HoraeError:
        refused = True
    read = [(r.method, r.target, r.headers, b"".join(r.parts)) for r in found if r.whole]
    return read, framing.midway and not refused, refused


def one(head: str, body: bytes = b"") -> bytes:
    return head.replace("\n", "\r\n").encode("latin-1") + body


ACCEPTED = {
    "get": (one("GET /a HTTP/1.1\nHost: h\n\n"), b""),
    "no-blank": (one("GET /a HTTP/1.1\nHost:h\n\n"), b""),
    "blanks": (one("GET /a HTTP/1.1\nHost: \t h \t \n\n"), b""),
    "empty-line-before": (one("\nGET /a HTTP/1.1\nHost: h\n\n"), b""),
    "empty-host": (one("GET /a HTTP/1.1\nHost:\n\n"), b""),
    "old": (one("GET /a HTTP/1.0\n\n"), b""),
    "length": (one("POST /a HTTP/1.1\nHost: h\nContent-Length: 3\n\n", b"abc"), b"abc"),
    "zero-length": (one("POST /a HTTP/1.1\nHost: h\nContent-Length: 0\n\n"), b""),
    "chunks": (one("POST /a HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n2\nab\n001\nc\n0\n\n"), b"abc"),
    "chunked-in-capitals": (one("POST /a HTTP/1.1\nHost: h\nTransfer-Encoding: CHUNKED\n\n0\n\n"), b""),
    "extension": (one('POST /a HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n1;a="b;c"\nx\n0;z\n\n'), b"x"),
    "trailers": (one("POST /a HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n1\nx\n0\nA: b\nC: d\n\n"), b"x"),
    "get-with-body": (one("GET /a HTTP/1.1\nHost: h\nContent-Length: 2\n\n", b"hi"), b"hi"),
    "accents": (one("GET /a HTTP/1.1\nHost: h\nX: caf\xe9\n\n"), b""),
}
CHUNKED = "POST /a HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n"
REFUSED = {
    "version-2": one("PRI * HTTP/2.0\n\nSM\n\n"),
    "version-1.2": one("GET /a HTTP/1.2\nHost: h\n\n"),
    "version-0.9": one("GET /a\n\n"),
    "two-blanks": one("GET  /a HTTP/1.1\nHost: h\n\n"),
    "three-words": one("GET /a b HTTP/1.1\nHost: h\n\n"),
    "blank-first": one(" GET /a HTTP/1.1\nHost: h\n\n"),
    "two-empty-lines-before": one("\n\nGET /a HTTP/1.1\nHost: h\n\n"),
    "no-host": one("GET /a HTTP/1.1\n\n"),
    "two-hosts": one("GET /a HTTP/1.1\nHost: h\nHost: h\n\n"),
    "host-with-path": one("GET /a HTTP/1.1\nHost: h/x\n\n"),
    "host-with-user": one("GET /a HTTP/1.1\nHost: u@h\n\n"),
    "blank-before-colon": one("GET /a HTTP/1.1\nHost : h\n\n"),
    "blank-before-name": one("GET /a HTTP/1.1\nHost: h\n X: y\n\n"),
    "first-header-folded": one("GET /a HTTP/1.1\n Host: h\n\n"),
    "folded": one("GET /a HTTP/1.1\nHost: h\nX: y\n z\n\n"),
    "no-colon": one("GET /a HTTP/1.1\nHost: h\nX\n\n"),
    "no-name": one("GET /a HTTP/1.1\nHost: h\n: y\n\n"),
    "nul": one("GET /a HTTP/1.1\nHost: h\nX: a\0b\n\n"),
    "bare-lf": b"GET /a HTTP/1.1\r\nHost: h\nX: y\r\n\r\n",
    "only-lf": b"GET /a HTTP/1.1\nHost: h\n\n",
    "bare-cr": b"GET /a HTTP/1.1\r\nHost: h\rX: y\r\n\r\n",
    "two-lengths": one("POST /a HTTP/1.1\nHost: h\nContent-Length: 1\nContent-Length: 1\n\n", b"x"),
    "list-of-lengths": one("POST /a HTTP/1.1\nHost: h\nContent-Length: 1, 1\n\n", b"x"),
    "signed-length": one("POST /a HTTP/1.1\nHost: h\nContent-Length: +1\n\n", b"x"),
    "negative-length": one("POST /a HTTP/1.1\nHost: h\nContent-Length: -1\n\n", b"x"),
    "hexadecimal-length": one("POST /a HTTP/1.1\nHost: h\nContent-Length: 0x1\n\n", b"x"),
    "underscored-length": one("POST /a HTTP/1.1\nHost: h\nContent-Length: 1_0\n\n", b"x" * 10),
    "long-length": one(f"POST /a HTTP/1.1\nHost: h\nContent-Length: {'9' * 30}\n\n", b"x"),
    "empty-length": one("POST /a HTTP/1.1\nHost: h\nContent-Length:\n\n"),
    "length-and-chunks": one("POST /a HTTP/1.1\nHost: h\nContent-Length: 5\nTransfer-Encoding: chunked\n\n0\n\n"),
    "gzip-and-chunked": one("POST /a HTTP/1.1\nHost: h\nTransfer-Encoding: gzip, chunked\n\n0\n\n"),
    "chunked-twice": one("POST /a HTTP/1.1\nHost: h\nTransfer-Encoding: chunked, chunked\n\n0\n\n"),
    "codings-in-two-lines": one(
        "POST /a HTTP/1.1\nHost: h\nTransfer-Encoding: identity\nTransfer-Encoding: chunked\n\n0\n\n"
    ),
    "identity": one("POST /a HTTP/1.1\nHost: h\nTransfer-Encoding: identity\n\n"),
    "empty-coding": one("POST /a HTTP/1.1\nHost: h\nTransfer-Encoding:\nContent-Length: 1\n\n", b"x"),
    "chunks-in-1.0": one("POST /a HTTP/1.0\nHost: h\nTransfer-Encoding: chunked\n\n0\n\n"),
    "authorization-twice": one("GET /a HTTP/1.1\nHost: h\nAuthorization: a\nAuthorization: b\n\n"),
    "cookie-twice": one("GET /a HTTP/1.1\nHost: h\nCookie: a=1\nCookie: a=2\n\n"),
    "proto-twice": one("GET /a HTTP/1.1\nHost: h\nX-Forwarded-Proto: http\nX-Forwarded-Proto: https\n\n"),
    "chunk-size-signed": one(CHUNKED + "+1\nx\n0\n\n"),
    "chunk-size-0x": one(CHUNKED + "0x1\nx\n0\n\n"),
    "chunk-size-blank-before": one(CHUNKED + " 1\nx\n0\n\n"),
    "chunk-size-blank-after": one(CHUNKED + "1 \nx\n0\n\n"),
    "chunk-size-underscored": one(CHUNKED + "1_0\nx\n0\n\n"),
    "chunk-size-overflows": one(CHUNKED + "1" + "0" * 16 + "\nx\n0\n\n"),
    "chunk-size-empty": one(CHUNKED + "\nx\n0\n\n"),
    "chunk-lf": one(CHUNKED) + b"1\nx\r\n0\r\n\r\n",
    "chunk-extension-name": one(CHUNKED) + b'1;[a="b"\r\nx\r\n0\r\n\r\n',
    "chunk-extension-space": one(CHUNKED) + b"1 ;a\r\nx\r\n0\r\n\r\n",
    "chunk-extension-lf": one(CHUNKED) + b"1;a\nx\r\n0\r\n\r\n",
    "chunk-extension-cr": one(CHUNKED) + b"1;a\rx\r\n0\r\n\r\n",
    "chunk-longer-than-its-size": one(CHUNKED + "1\nxy\n0\n\n"),
    "chunk-content-lf": one(CHUNKED) + b"1\r\nx\n0\r\n\r\n",
    "last-chunk-lf": one(CHUNKED) + b"0\n\r\n",
    "trailer-lf": one(CHUNKED) + b"0\r\nA: b\n\r\n\r\n",
    "trailer-malformed": one(CHUNKED + "0\nA b\n\n"),
    "trailer-with-blank": one(CHUNKED + "0\nA : b\n\n"),
    "long-trailers": one(CHUNKED + "0\n" + f"A: {'b' * MOST_TRAILERS}\n\n"),
    "long-head": one(f"GET /a HTTP/1.1\nHost: h\nX: {'y' * MOST_HEAD}\n\n"),
    "many-headers": one("GET /a HTTP/1.1\nHost: h\n" + "X: y\n" * MOST_FIELDS + "\n"),
    "long-method": one("G" * 33 + " /a HTTP/1.1\nHost: h\n\n"),
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "nonsense": b"\xff\xfe\x00\x01",
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_valid_requests_are_read_in_any_pieces(case: str):
    data, body = ACCEPTED[case]
    read, midway, refused = requests(data)
    assert (len(read), midway, refused) == (1, False, False)
    assert read[0][3] == body
    assert requests(data, list(range(len(data)))) == (read, False, False)
    assert requests(data + data) == (read * 2, False, False)


@pytest.mark.parametrize("case", REFUSED)
def test_ambiguous_bytes_are_refused_in_any_pieces(case: str):
    data = REFUSED[case]
    assert requests(data) == ([], False, True)
    if len(data) < 2000:
        assert requests(data, list(range(len(data)))) == ([], False, True)
    proper = ACCEPTED["get"][0]
    read, _, refused = requests(proper + data + proper)
    assert (len(read), refused) == (1, True), "nothing behind it is read"


PIECES = (
    b"GET /a HTTP/1.1\r\n", b"POST http://h/b?c HTTP/1.1\r\n", b"POST /p HTTP/1.0\r\n", b"Host: h\r\n", b"Host: i\r\n",
    b"Content-Length: 3\r\n", b"Content-Length: 10\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n", b"Connection: close\r\n", b"Connection: Upgrade\r\nUpgrade: h2c\r\n",
    b"Expect: 100-continue\r\n", b"X: y\r\n", b" folded\r\n", b"X : y\r\n", b"\r\n", b"\n", b"\r", b"abc",
    b"3\r\nabc\r\n", b"1;x=y\r\na\r\n", b"0\r\n\r\n", b"0\r\n", b"A: trailer\r\n",
    b"0", b"\0", b"\x80", b" ", b"\t", b":", b"5", b"a\n",
)  # fmt: skip
STREAMS = st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=24).map(b"".join)
SHORT_OF_PROPER = st.sampled_from(sorted(data for data, _ in ACCEPTED.values())).flatmap(
    lambda data: st.tuples(st.just(data), st.integers(0, len(data)), st.binary(max_size=2)).map(
        lambda it: it[0][: it[1]] + it[2] + it[0][it[1] :]
    )
)


@given(data=STREAMS | SHORT_OF_PROPER, cuts=st.lists(st.integers(0, 200), max_size=12))
def test_cuts_make_no_difference(data: bytes, cuts: list[int]):
    whole, _, refused = requests(data)
    found, _, found_refused = requests(data, [cut for cut in cuts if cut <= len(data)])
    assert (found, found_refused) == (whole, refused)


class Other:
    """llhttp's reading of the same bytes."""

    def __init__(self) -> None:
        self.read: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.parser: Any = httptools.HttpRequestParser(self)

    def on_message_begin(self) -> None:
        self.body = b""

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.read.append((self.parser.get_method(), self.body))


def by_llhttp(data: bytes) -> list[tuple[bytes, bytes]]:
    other = Other()
    try:
        other.parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        return []  # llhttp stops at a request to upgrade
    except httptools.HttpParserError:
        pass
    return other.read


@given(data=STREAMS | SHORT_OF_PROPER)
def test_llhttp_reads_the_same_requests_first(data: bytes):
    read = [(method, body) for method, _, _, body in requests(data)[0]]
    is_comparable = b"Upgrade" not in data and b"Connection: close" not in data and b" HTTP/1.0" not in data
    if is_comparable and all(method in (b"GET", b"POST") for method, _ in read):  # llhttp knows a list of methods
        assert by_llhttp(data)[: len(read)] == read


@given(data=STREAMS | SHORT_OF_PROPER)
def test_h11_reads_the_same_first_request(data: bytes):
    read = requests(data)[0]
    if not read or b"Upgrade" in data:
        return
    connection, body = h11.Connection(h11.SERVER), b""
    connection.receive_data(data.removeprefix(b"\r\n"))  # h11 accepts no empty line
    request = connection.next_event()
    assert isinstance(request, h11.Request)
    while isinstance(event := connection.next_event(), h11.Data):
        body += bytes(event.data)
    assert isinstance(event, h11.EndOfMessage)
    assert (request.method, body) == (read[0][0], read[0][3])


def test_no_bytes_are_held_for_a_silent_client():
    framing, found = RequestFraming(), list[HttpRequest]()
    framing.feed(one(f"POST /a HTTP/1.1\nHost: h\nX: {'y' * 60_000}\nContent-Length: 100000\n\n", b"x" * 100_000))
    take_all(framing, found)
    assert found[0].whole
    assert (framing._bytes, framing._fields.block) == (b"", b"")
