"""Errors as application/problem+json (RFC 9457), each with its remedy."""

import re
from contextvars import ContextVar
from typing import Any

import msgspec
import structlog
from msgspec import UNSET, Struct, UnsetType

from horae.errors import Busy, HoraeError, TooLarge, Unauthorized
from horae.server.reply import PROBLEM, UNCACHED, Response, encode

PROPER_ID = re.compile(rb"[0-9A-Za-z._:/+=@-]{1,128}")  # the request ids that a client may choose
REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")  # the id of the request that this task answers

log = structlog.get_logger("horae.server")


class ProblemDocument(Struct, frozen=True, kw_only=True):
    """An error and its remedy. The document of an error also has the members that only this error has."""

    type: str
    title: str
    status: int
    detail: str
    remedy: str = ""
    instance: str = ""
    request_id: str = msgspec.field(default="", name="requestId")
    field: str | UnsetType = UNSET  # the part of the request that is wrong
    index: int | UnsetType = UNSET  # the position of the wrong item, in a request with several
    retry_after: int | UnsetType = msgspec.field(default=UNSET, name="retryAfter")  # seconds


class MethodNotAllowed(HoraeError):
    """The path exists, but not for this method."""

    status, slug, title, exit_code = 405, "method-not-allowed", "This path has no such method", 2


class UnsupportedMedia(HoraeError):
    """The body is compressed, or not JSON in UTF-8."""

    status, slug, title, exit_code = 415, "unsupported-media", "This body cannot be read", 2


class HeadTooLong(HoraeError):
    """The request's line, headers or trailers exceed their limit."""

    status, slug, title, exit_code = 431, "head-too-long", "The request's headers are too long", 2


class InternalError(HoraeError):
    """An unexpected error; its details are in the log, not in the answer."""

    slug = "internal"


def problem_document(error: HoraeError, instance: str = "") -> dict[str, Any]:
    """Return an error's document. The standard members replace members of the error with the same names."""
    return {
        **error.fields,
        "type": f"urn:horae:{error.slug}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "remedy": error.remedy,
        "instance": instance,
    }


def problem(error: HoraeError, instance: str) -> Response:
    """Return the answer for an error; `instance` is the path of the request."""
    headers = [UNCACHED]
    if isinstance(error, Unauthorized):
        headers.append((b"www-authenticate", b"Bearer"))
    if isinstance(error, Busy):
        headers.append((b"retry-after", b"%d" % error.retry_after))
    if isinstance(error, MethodNotAllowed):
        headers.append((b"allow", error.fields["allow"].encode()))
    if isinstance(error, TooLarge):  # the rest of the body is not read, so the connection must be closed
        headers.append((b"connection", b"close"))
    if error.fields.get("retryAfter"):
        headers.append((b"retry-after", b"%d" % error.fields["retryAfter"]))
    document = problem_document(error, instance)
    if request_id := REQUEST_ID.get():
        document["requestId"] = request_id
    return Response(error.status, encode(document), PROBLEM, headers)


def unexpected_problem(error: Exception, route: str, instance: str) -> Response:
    """Return the answer to an unexpected exception."""
    log.error("request failed", route=route, request_id=REQUEST_ID.get(), exc_info=error)
    remedy = "Try again; if it happens again, the server's log says why."
    return problem(InternalError("The server could not finish this request.", remedy), instance)
