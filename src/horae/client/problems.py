"""Errors of a server as exceptions: problem+json becomes the class in errors.py that produced it."""

from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from horae.client.transport.transport import ApiResponse, Unanswered
from horae.errors import BadInput, Busy, Conflict, Forbidden, HoraeError, NotFound, OverQuota, TooLarge, Unauthorized

_KNOWN = ("type", "title", "status", "detail", "remedy")
_BY_STATUS = {
    400: BadInput, 401: Unauthorized, 403: Forbidden, 404: NotFound, 409: Conflict, 413: TooLarge, 429: OverQuota,
    503: Busy,
}  # fmt: skip


class Unreachable(HoraeError):
    """No server answered within the client's patience."""

    status: ClassVar[int] = 503
    slug, title = "unreachable", "No server answers"


def rebuild(reply: ApiResponse, place: str) -> HoraeError:
    """Return the exception for an answer that is an error, or that redirects the client."""
    problem = _document(reply)
    status = reply.status
    if status < 400:
        target = reply.headers.get("location", "another address")
        return HoraeError(f"{place} does not answer, but redirects to {target}.", _NAME_IT)
    slug = str(problem.get("type", "")).rstrip("/").rpartition("/")[2].rpartition(":")[2]
    kind = _by_slug().get(slug) or _BY_STATUS.get(status, HoraeError)
    detail = str(problem.get("detail") or problem.get("title") or f"The server answered {status}.")
    fields = {name: value for name, value in problem.items() if name not in _KNOWN}
    if issubclass(kind, Busy):
        fields.pop("retryAfter", None)
        return kind(detail, str(problem.get("remedy", "")), retry_after=int(retry_after(reply) or 1), **fields)
    return kind(detail, str(problem.get("remedy", "")), **fields)


def not_horae(place: str = "The server") -> HoraeError:
    """Return the error for an answer that a Horae server does not give."""
    return HoraeError(f"{place} does not answer like a Horae server.", _NAME_IT)


def retry_after(reply: ApiResponse) -> float | None:
    """Return the seconds to wait before the next request, if the server gives them."""
    text = reply.headers.get("retry-after", "")
    return float(text) if text.isdecimal() else None


def unreachable(place: str, lost: Unanswered, method: str) -> Unreachable:
    """Return the error to raise when no server answers."""
    if lost.sent:
        remedy = _CHANGED_NOTHING if method in ("GET", "HEAD") else _MAY_BE_DONE
        if place.startswith("http:"):
            remedy += f" If the server speaks TLS, name it as https:{place.removeprefix('http:')}."
        return Unreachable(f"{place} did not answer ({lost.reason}).", remedy)
    remedy = next((text for mark, text in _TLS if mark in lost.reason), _NOBODY)
    return Unreachable(f"No Horae server answers at {place} ({lost.reason}).", remedy)


def with_all_places(error: HoraeError, places: list[str]) -> HoraeError:
    """Name every server that was tried, not only the last one."""
    mark = f"No Horae server answers at {places[-1]} "
    if len(places) > 1 and isinstance(error, Unreachable) and error.detail.startswith(mark):
        error.detail = f"No Horae server answers at {', '.join(places)} {error.detail.removeprefix(mark)}"
    return error


_NAME_IT = "Set HORAE_URL to the address of a Horae server itself."
_CHANGED_NOTHING = "You can repeat the request: it changes nothing."
_MAY_BE_DONE = "The server may have processed the request: check this before you repeat it."
_NOBODY = "Start one with `horae up`, or name the right one with HORAE_URL."
_UNTRUSTED = (
    "The server's certificate is not signed by a trusted authority, or is for another name. Set HORAE_CA to"
    " the file of the authority that signed it, and name the server as its certificate does."
)
_NO_TLS = "The server does not use TLS at this address. Write its URL as http://..."
_TLS = (
    ("CERTIFICATE_VERIFY_FAILED", _UNTRUSTED),
    ("WRONG_VERSION_NUMBER", _NO_TLS),
    ("RECORD_LAYER_FAILURE", _NO_TLS),
)


def _document(reply: ApiResponse) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return document if isinstance(document, dict) else {}


def _by_slug() -> dict[str, type[HoraeError]]:
    return {kind.slug: kind for kind in reversed(list(_kinds(HoraeError)))}  # for equal slugs: the most general class


def _kinds(root: type[HoraeError]) -> Iterator[type[HoraeError]]:
    yield root
    for kind in root.__subclasses__():
        yield from _kinds(kind)
