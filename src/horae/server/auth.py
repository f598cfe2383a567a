"""Authentication by a bearer key or by the cookie of a signed-in browser, and authorisation to use routes."""

import hmac
from collections.abc import Mapping

from horae.engine.tenancy.keys import ApiKeys
from horae.errors import Forbidden, StoreUnavailable, Unauthorized
from horae.model.tenancy.principal import Principal
from horae.server.reply import Header
from horae.server.route import Route
from horae.server.time_limits import within_seconds

COOKIE = "horae"
CSRF_HEADER = b"x-csrf-token"
NAMESPACE_HEADER = b"horae-namespace"
SOON = 1.0  # seconds within which the store must confirm a cached credential of a monitoring request
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

_REMEDY = (
    "Send `Authorization: Bearer <key>`; the first key is in the server's admin.key, `horae keys create` makes more."
)


async def authenticate(keys: ApiKeys, method: str, headers: Mapping[bytes, bytes]) -> Principal:
    """Return the caller of a request. The header Horae-Namespace chooses among the namespaces of the credential.

    Raises Unauthorized without a valid credential, Forbidden for a browser's write without its CSRF token, and NotFound
    for a namespace that does not belong to the credential.
    """
    shown = headers.get(b"authorization")
    who = await _bearer(keys, shown) if shown is not None else await _browser(keys, method, headers)
    chosen = headers.get(NAMESPACE_HEADER)
    return who if chosen is None else await keys.in_namespace(who, chosen.decode("latin-1"))


async def authenticate_monitoring(keys: ApiKeys, method: str, headers: Mapping[bytes, bytes]) -> Principal:
    """Return the caller of a monitoring request. If the store is away, a credential in this server's cache suffices."""
    known = keys.recall(_key_of(headers.get(b"authorization", b"")))
    if known is None:
        return await authenticate(keys, method, headers)
    try:
        return await within_seconds(authenticate(keys, method, headers), SOON)
    except StoreUnavailable:
        return known


def authorise(who: Principal, route: Route) -> None:
    """Raise Forbidden for a credential that may not use the route."""
    may = route.access
    if may.admits(who):
        return
    needed = may.least
    flag = f" --permission {may.permission}" if may.permission else ""
    beyond = f' and the permission "{may.permission}"' if may.permission else ""
    raise Forbidden(
        f'A credential with the role "{who.role}" may not use {route.method} {route.path}: that route requires the role'
        f' "{needed}"{beyond}.',
        f"Make such a key with `horae keys create NAME --role {needed}{flag}`, on the server's machine or with an"
        " administrator's key, and set HORAE_KEY to it.",
    )


async def _browser(keys: ApiKeys, method: str, headers: Mapping[bytes, bytes]) -> Principal:
    cookie = cookie_of(headers)
    who = await keys.check_cookie(cookie) if cookie else None
    if who is None:
        raise Unauthorized("This request needs a credential.", _REMEDY)
    if method not in SAFE_METHODS:
        _check_csrf(who, headers)
    return who


async def _bearer(keys: ApiKeys, shown: bytes) -> Principal:
    key = _key_of(shown)
    who = await keys.check(key) if key else None
    if who is None:
        raise Unauthorized("This key is not valid: it is unknown, revoked or expired.", _REMEDY)
    return who


def _key_of(shown: bytes) -> str:
    scheme, _, text = shown.decode("latin-1").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def _check_csrf(who: Principal, headers: Mapping[bytes, bytes]) -> None:
    """Check the CSRF token: a page of another site can make a browser send its cookie, but cannot read this token."""
    token = headers.get(CSRF_HEADER, b"")
    if who.csrf is None or not hmac.compare_digest(token, who.csrf.encode()):
        raise Forbidden(
            "A browser's write needs its CSRF token.", "Send the `csrf` of GET /api/v1/me as the header X-CSRF-Token."
        )


def refuse_forms(headers: Mapping[bytes, bytes]) -> None:
    """Refuse a request that a form of another site could send. Routes use this where no CSRF token exists yet.

    Otherwise a user could be signed in to an attacker's account without noticing. A form cannot send JSON; and before a
    page of another site may send JSON, its browser asks the server (a CORS preflight), which refuses.
    """
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
        raise Forbidden("A sign-in must be sent as JSON.", "Send `Content-Type: application/json`.")


def cookie_of(headers: Mapping[bytes, bytes], name: str = COOKIE) -> str | None:
    """Return the text of the cookie `name`. Other cookies are ignored, even malformed ones of neighbouring sites."""
    for pair in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        own, _, text = pair.strip().partition("=")
        if own == name:
            return text
    return None


def set_cookie(text: str, seconds: int, *, secure: bool, name: str = COOKIE, path: str = "/") -> Header:
    """Return the header that sets a cookie; an empty text deletes it."""
    parts = [f"{name}={text}", f"Path={path}", f"Max-Age={seconds}", "HttpOnly", "SameSite=Lax"]
    return (b"set-cookie", "; ".join([*parts, "Secure"] if secure else parts).encode())
