"""Published ways to hide one request in another, each with its source and the only right reading.

The hidden request is for /smuggled. `ONE`: the request is valid, and everything after its head belongs to its body.
`REFUSED`: the request is ambiguous, and no part of it is acted on.
"""

from msgspec import Struct

ONE, REFUSED = "one", "refused"
TARGET = "/api/v1/sign-in?case"
HIDDEN = b"GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
START = b"GET /smuggled HTTP/1.1\r\nX: "  # swallows the first line of the next request

WATCHFIRE = "Linhart et al., HTTP Request Smuggling (2005)"
REBORN = "Kettle, HTTP Desync Attacks (2019)"
KLEIN = "Klein, HTTP Request Smuggling in 2020"
H2C = "Bishop Fox, h2c Smuggling (2020)"
SEQUEL = "Kettle, HTTP/2: The Sequel is Always Worse (2021)"
TREQS = "Jabiyev et al., T-Reqs (2021)"
BROWSER = "Kettle, Browser-Powered Desync Attacks (2022)"
GARDEN = "Kallus et al., The HTTP Garden (2024)"
CHUNKS = "Weikop, Funky Chunks (2025)"
TRAILERS = "Sartor, Trailing Danger (2025)"
ENDGAME = "Kettle, HTTP/1.1 Must Die (2025)"


class Case(Struct, frozen=True):
    """Bytes of one client, and their right reading."""

    source: str
    sent: bytes
    read: str


def post(*headers: str, body: bytes = b"", target: str = TARGET, version: str = "1.1", host: str = "Host: h") -> bytes:
    lines = [f"POST {target} HTTP/{version}", *([host] if host else []), *headers]
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1") + b"\r\n" + body


def length(body: bytes, *headers: str) -> bytes:
    return post(f"Content-Length: {len(body)}", *headers, body=body)


def chunked(body: bytes, *headers: str) -> bytes:
    return post("Transfer-Encoding: chunked", *headers, body=body)


def both(coding: str, *headers: str) -> bytes:
    """Return a request with a length that covers everything, and a coding that ends before the hidden request."""
    body = b"0\r\n\r\n" + HIDDEN
    return post(f"Content-Length: {len(body)}", coding, *headers, body=body)


END = b"0\r\n\r\n"
TE = "Transfer-Encoding"
_INSIDE = b"%x\r\n%b\r\n0\r\n\r\n" % (len(HIDDEN), HIDDEN)

CASES: dict[str, Case] = {
    # Two lengths, or a length and chunks
    "CL.TE": Case(REBORN, both(f"{TE}: chunked"), REFUSED),
    "TE.CL": Case(REBORN, post(f"{TE}: chunked", "Content-Length: 4", body=_INSIDE), REFUSED),
    "CL.CL different": Case(WATCHFIRE, post("Content-Length: 0", "Content-Length: 44", body=HIDDEN), REFUSED),
    "CL.CL equal": Case("RFC 9112, 6.3", post("Content-Length: 5", "Content-Length: 5", body=b"12345"), REFUSED),
    "CL list": Case("RFC 9110, 8.6", post("Content-Length: 5, 5", body=b"12345"), REFUSED),
    "CL list with zero": Case(TREQS, post("Content-Length: 0, 44", body=HIDDEN), REFUSED),
    "CL and an empty TE": Case(GARDEN, both(f"{TE}:"), REFUSED),
    "CL with a sign": Case(KLEIN, post(f"Content-Length: +{len(HIDDEN)}", body=HIDDEN), REFUSED),
    "CL negative": Case(TREQS, post("Content-Length: -1", body=HIDDEN), REFUSED),
    "CL hexadecimal": Case(GARDEN, post(f"Content-Length: 0x{len(HIDDEN):x}", body=HIDDEN), REFUSED),
    "CL with an underscore": Case(GARDEN, post("Content-Length: 4_4", body=HIDDEN), REFUSED),
    "CL with blanks inside": Case(KLEIN, post("Content-Length: 4 4", body=HIDDEN), REFUSED),
    "CL with a NUL": Case(GARDEN, post("Content-Length: 0\0", body=HIDDEN), REFUSED),
    "CL that overflows": Case("CVE-2021-40346 and its kin", post(f"Content-Length: {2**64 + 1}", body=HIDDEN), REFUSED),
    "CL with a vertical tab": Case(GARDEN, post("Content-Length: \x0b0", body=HIDDEN), REFUSED),
    "CL quoted": Case(TREQS, post('Content-Length: "0"', body=HIDDEN), REFUSED),
    "CL empty": Case(GARDEN, post("Content-Length:", body=HIDDEN), REFUSED),
    # One coding in many spellings
    "TE.TE two lines": Case(REBORN, both(f"{TE}: chunked", f"{TE}: cow"), REFUSED),
    "TE.TE cow first": Case(REBORN, post(f"{TE}: cow", f"{TE}: chunked", body=END + HIDDEN), REFUSED),
    "TE xchunked": Case(REBORN, both(f"{TE}: xchunked"), REFUSED),
    "TE blank before the colon": Case("CVE-2019-16276", both(f"{TE} : chunked"), REFUSED),
    "TE tab before the colon": Case("CVE-2021-22959", both(f"{TE}\t: chunked"), REFUSED),
    "TE with a vertical tab": Case(REBORN, both(f"{TE}: \x0bchunked"), REFUSED),
    "TE with a form feed": Case(REBORN, both(f"{TE}: chunked\x0c"), REFUSED),
    "TE quoted": Case(REBORN, both(f'{TE}: "chunked"'), REFUSED),
    "TE with a parameter": Case(GARDEN, both(f"{TE}: chunked;q=1"), REFUSED),
    "TE with a comma": Case("CVE-2022-32213", both(f"{TE}: chunked,"), REFUSED),
    "TE identity, then chunked": Case(REBORN, post(f"{TE}: identity, chunked", body=END + HIDDEN), REFUSED),
    "TE gzip, then chunked": Case("RFC 9112, 6.1", post(f"{TE}: gzip, chunked", body=END + HIDDEN), REFUSED),
    "TE chunked, then identity": Case(REBORN, both(f"{TE}: chunked, identity"), REFUSED),
    "TE chunked twice": Case("RFC 9112, 7.1", post(f"{TE}: chunked, chunked", body=END + HIDDEN), REFUSED),
    "TE identity": Case("RFC 9112, 6.1", both(f"{TE}: identity"), REFUSED),
    "TE folded": Case("CVE-2022-32215", both(f"{TE}:\r\n chunked"), REFUSED),
    "TE after a folded line": Case("RFC 9112, 5.2", both(f"X: y\r\n {TE}: chunked"), REFUSED),
    "TE after a bare CR": Case("CVE-2023-30589", both(f"X: y\r{TE}: chunked"), REFUSED),
    "TE after a bare LF": Case("CVE-2022-32214", both(f"X: y\n{TE}: chunked"), REFUSED),
    "TE in HTTP/1.0": Case("RFC 9112, 6.1", post(f"{TE}: chunked", body=END + HIDDEN, version="1.0"), REFUSED),
    "TE with an underscore": Case(GARDEN, length(END + HIDDEN, "Transfer_Encoding: chunked"), ONE),
    "TE in another name": Case(REBORN, length(END + HIDDEN, "X-Transfer-Encoding: chunked"), ONE),
    "TE in capitals": Case("RFC 9112, 7.1", post("TRANSFER-ENCODING: Chunked", body=_INSIDE), ONE),
    # Chunks
    "chunk with the hidden request": Case("RFC 9112, 7.1", chunked(_INSIDE), ONE),
    "chunk size 0x": Case(REBORN, chunked(b"0x0\r\n\r\n" + HIDDEN), REFUSED),
    "chunk size with a sign": Case(GARDEN, chunked(b"+0\r\n\r\n" + HIDDEN), REFUSED),
    "chunk size with an underscore": Case(GARDEN, chunked(b"0_0\r\n\r\n" + HIDDEN), REFUSED),
    "chunk size that overflows": Case(TREQS, chunked(b"1" + b"0" * 16 + END + HIDDEN), REFUSED),
    "chunk size with a blank": Case(GARDEN, chunked(b"0 \r\n\r\n" + HIDDEN), REFUSED),
    "chunk size after a blank": Case(GARDEN, chunked(b" 0\r\n\r\n" + HIDDEN), REFUSED),
    "chunk size empty": Case(GARDEN, chunked(b"\r\n\r\n" + HIDDEN), REFUSED),
    "chunk size with LF": Case("RFC 9112, 7.1", chunked(b"0\n\n" + HIDDEN), REFUSED),
    "chunk extension": Case("RFC 9112, 7.1.1", chunked(b'1;a="b"\r\nx\r\n0;c\r\n\r\n'), ONE),
    "TERM.EXT": Case(CHUNKS, chunked(b"2;\nxx\r\n27\r\n0\r\n\r\n" + HIDDEN + END), REFUSED),
    "EXT.TERM": Case(CHUNKS, chunked(b"2;\rxx\r\n27\r\n0\r\n\r\n" + HIDDEN + END), REFUSED),
    "TERM.SPILL": Case(CHUNKS, chunked(b"5\r\nAAAAA\n27\r\n0\r\n\r\n" + HIDDEN + END), REFUSED),
    "SPILL.TERM": Case(CHUNKS, chunked(b"5\r\nAAAAAXX2\r\n27\r\n0\r\n\r\n" + HIDDEN + END), REFUSED),
    "ONE.TWO": Case(CHUNKS, chunked(b"5\r\nAAAAA\r27\r\n0\r\n\r\n" + HIDDEN + END), REFUSED),
    "chunk extension of a bare CR": Case("CVE-2021-22960", chunked(b"0;\r\r\n\r\n" + HIDDEN), REFUSED),
    "chunk extension with a NUL": Case(GARDEN, chunked(b"0;\0\r\n\r\n" + HIDDEN), REFUSED),
    "last chunk of many zeros": Case(GARDEN, chunked(b"0000000000000000\r\n\r\n"), ONE),
    # Trailers
    "trailers": Case("RFC 9110, 6.5.1", chunked(b"0\r\nAuthorization: Bearer x\r\n\r\n"), ONE),
    "trailer with a length": Case(TRAILERS, chunked(b"0\r\nContent-Length: 44\r\n\r\n"), ONE),
    "trailer with a coding": Case(TRAILERS, chunked(b"0\r\nTransfer-Encoding: chunked\r\n\r\n"), ONE),
    "trailer with a request": Case(TRAILERS, chunked(b"0\r\n" + HIDDEN), REFUSED),
    "trailer with a bare LF": Case(GARDEN, chunked(b"0\r\nX: y\n\n" + HIDDEN), REFUSED),
    "trailer without a colon": Case(GARDEN, chunked(b"0\r\nnonsense\r\n\r\n"), REFUSED),
    # Bodies that servers ignore, and heads that they answer too early
    "CL.0": Case(BROWSER, length(START), ONE),
    "CL.0 in a GET": Case(BROWSER, length(HIDDEN).replace(b"POST", b"GET"), ONE),
    "CL.0 in a HEAD": Case(TREQS, length(HIDDEN).replace(b"POST", b"HEAD"), ONE),
    "CL.0 in an OPTIONS": Case(TREQS, length(HIDDEN).replace(b"POST", b"OPTIONS"), ONE),
    "CL.0 in a DELETE": Case(TREQS, length(HIDDEN).replace(b"POST", b"DELETE"), ONE),
    "TE.0": Case("Bugcrowd, TE.0 (2024)", chunked(_INSIDE).replace(b"POST", b"OPTIONS"), ONE),
    "0.CL": Case(ENDGAME, post(" Content-Length: 44", body=HIDDEN), REFUSED),
    "0.CL by a folded name": Case(ENDGAME, post("Content-Length\r\n : 44", body=HIDDEN), REFUSED),
    "pause": Case(BROWSER, length(HIDDEN, "Connection: keep-alive"), ONE),
    "Expect": Case(ENDGAME, length(HIDDEN, "Expect: 100-continue"), ONE),
    "Expect in a GET": Case(ENDGAME, length(HIDDEN, "Expect: 100-continue").replace(b"POST", b"GET"), ONE),
    "Expect misspelled": Case(ENDGAME, length(HIDDEN, "Expect: y 100-continue"), ONE),
    "Expect twice": Case(ENDGAME, length(HIDDEN, "Expect: 100-continue", "Expect: 100-continue"), REFUSED),
    "h2c": Case(
        H2C, length(HIDDEN, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"), ONE
    ),
    "Upgrade to a socket": Case(H2C, length(HIDDEN, "Connection: Upgrade", "Upgrade: websocket"), ONE),
    "HTTP/2 preface": Case(SEQUEL, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + HIDDEN, REFUSED),
    "Connection names the length": Case(KLEIN, length(HIDDEN, "Connection: Content-Length"), ONE),
    # Lines
    "only LF": Case("RFC 9112, 2.2", length(HIDDEN).replace(b"\r\n", b"\n", 2), REFUSED),
    "NUL in a value": Case("RFC 9110, 5.5", length(HIDDEN, "X: a\0b"), REFUSED),
    "CR in a value": Case("RFC 9112, 2.2", length(HIDDEN, "X: a\rb"), REFUSED),
    "blank before a name": Case("RFC 9112, 2.2", post(" X: y", "Content-Length: 0", body=HIDDEN, host=""), REFUSED),
    "no name": Case(GARDEN, length(HIDDEN, ": y"), REFUSED),
    "no colon": Case(GARDEN, length(HIDDEN, "X"), REFUSED),
    "parentheses in a name": Case(GARDEN, length(HIDDEN, "X(): y"), REFUSED),
    "empty line before": Case("RFC 9112, 2.2", b"\r\n" + length(HIDDEN), ONE),
    "empty lines before": Case(GARDEN, b"\r\n\r\n\r\n" + HIDDEN, REFUSED),
    # The first line, and Host
    "HTTP/0.9": Case("RFC 9112, 2.3", b"GET /smuggled\r\n\r\n", REFUSED),
    "HTTP/1.2": Case(GARDEN, post(version="1.2", body=HIDDEN), REFUSED),
    "HTTP/11": Case(GARDEN, post(version="11", body=HIDDEN), REFUSED),
    "two blanks": Case("RFC 9112, 3", b"GET  /smuggled HTTP/1.1\r\nHost: h\r\n\r\n", REFUSED),
    "tab for a blank": Case("RFC 9112, 3", b"GET\t/smuggled\tHTTP/1.1\r\nHost: h\r\n\r\n", REFUSED),
    "blank in the target": Case("RFC 9112, 3.2", b"GET /smuggled x HTTP/1.1\r\nHost: h\r\n\r\n", REFUSED),
    "no Host": Case("RFC 9112, 3.2", post(host="", body=b""), REFUSED),
    "two Hosts": Case("RFC 9112, 3.2", post("Host: i"), REFUSED),
    "Host with a path": Case(REBORN, post(host="Host: h/smuggled"), REFUSED),
    "Host with a user": Case(REBORN, post(host="Host: h@i"), REFUSED),
    "target and Host differ": Case("RFC 9112, 3.2.2", post(target="http://i/smuggled"), REFUSED),
    "target and Host agree": Case("RFC 9112, 3.2.2", post("Content-Length: 0", target=f"http://h{TARGET}"), ONE),
    "CONNECT": Case("RFC 9112, 3.2.3", b"CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n" + HIDDEN, REFUSED),
    "two credentials": Case(KLEIN, post("Authorization: Bearer a", "Authorization: Bearer b"), REFUSED),
}
