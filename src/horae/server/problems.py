"""Errors as application/problem+json (RFC 9457), each with its remedy."""

from typing import Any

import structlog
from msgspec import Struct

from horae.errors import Busy, HoraeError, TooLarge, Unauthorized
from horae.server.reply import PROBLEM, UNCACHED, Reply, encode

log = structlog.get_logger("horae.server")


class Problem(Struct, frozen=True, kw_only=True):
    """What went wrong and what to do; an error's own members stand beside these."""

    type: str
    title: str
    status: int
    detail: str
    remedy: str = ""
    instance: str = ""


class MethodNotAllowed(HoraeError):
    """The path exists, but not for this method."""

    status, slug, title, exit_code = 405, "method-not-allowed", "This path has no such method", 2


class HeadTooLong(HoraeError):
    """The request's line, headers or trailers are over their bound."""

    status, slug, title, exit_code = 431, "head-too-long", "The request's headers are too long", 2


class Broken(HoraeError):
    """Something nobody foresaw; the log has it, the answer does not."""

    slug = "internal"


def problem_document(error: HoraeError, instance: str = "") -> dict[str, Any]:
    """An error's document. Its own members come first in the writing and last in the reading: none can hide these."""
    return {
        **error.fields,
        "type": f"urn:horae:{error.slug}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "remedy": error.remedy,
        "instance": instance,
    }


def problem(error: HoraeError, instance: str) -> Reply:
    """An error's answer."""
    headers = [UNCACHED]
    if isinstance(error, Unauthorized):
        headers.append((b"www-authenticate", b"Bearer"))
    if isinstance(error, Busy):
        headers.append((b"retry-after", b"%d" % error.retry_after))
    if isinstance(error, MethodNotAllowed):
        headers.append((b"allow", error.fields["allow"].encode()))
    if isinstance(error, TooLarge):  # the rest of the body is not read, so the connection cannot go on
        headers.append((b"connection", b"close"))
    if error.fields.get("retryAfter"):
        headers.append((b"retry-after", b"%d" % error.fields["retryAfter"]))
    return Reply(error.status, encode(problem_document(error, instance)), PROBLEM, headers)


def broken(error: Exception, route: str, instance: str) -> Reply:
    """The answer to an exception nobody foresaw."""
    log.error("request failed", route=route, exc_info=error)
    remedy = "Try again; if it happens again, the server's log says why."
    return problem(Broken("The server could not finish this request.", remedy), instance)
