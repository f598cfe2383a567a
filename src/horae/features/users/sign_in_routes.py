"""Routes by which browsers sign in, with a password or at an identity provider."""

import hmac
from typing import Annotated
from urllib.parse import quote

from msgspec import Meta

from horae.engine.base.tokens import digest_of
from horae.engine.tenancy.keys import BrowserSignIn
from horae.env import SECOND
from horae.errors import Forbidden, HoraeError, NotFound, TooOften, Unauthorized
from horae.features.users.engine.oidc import Oidc
from horae.features.users.part import UsersPart
from horae.model.base.view import View
from horae.server.access import ANY_CREDENTIAL, PUBLIC
from horae.server.audit_recording import record_failed_sign_in
from horae.server.auth import cookie_of, refuse_forms, set_cookie
from horae.server.call import ApiCall
from horae.server.reading.bodies import SMALL_LIMIT, RequestBody
from horae.server.reading.queries import Query, Text
from horae.server.reply import UNCACHED, Response, nothing, ok
from horae.server.route import ACTION, API, UNRECORDED, get, post
from horae.server.routes.tenancy.me import CallerView
from horae.server.scopes import closed

FLOW = "horae_oidc"  # the name of the cookie with the state of a sign-in at the identity provider
FLOW_SECONDS = 600  # the life of this cookie


class SignInMethods(View, frozen=True, kw_only=True):
    """The available ways to sign in."""

    password: bool
    oidc: Annotated[str | None, Meta(description="The identity provider's name.")] = None


class PasswordBody(RequestBody, frozen=True, kw_only=True):
    """A name and a password."""

    name: Annotated[str, Meta(min_length=1, max_length=128)]
    password: Annotated[str, Meta(min_length=1, max_length=1024)]


class NewPasswordBody(RequestBody, frozen=True, kw_only=True):
    """The current and the new password of the caller."""

    current: Annotated[str, Meta(min_length=1, max_length=1024)]
    password: Annotated[str, Meta(min_length=1, max_length=1024)]


class OidcCallbackQuery(Query, frozen=True, kw_only=True, rename=None, forbid_unknown_fields=False):
    """The query parameters of a redirect from an identity provider, as OAuth names them. Providers may add others."""

    state: Text = ""
    code: Annotated[str, Meta(max_length=4096)] = ""
    error: Text | None = None
    error_description: Annotated[str, Meta(max_length=1024)] | None = None


@get(f"{API}/sign-in", "me.sign-in-methods", SignInMethods, access=PUBLIC, scope=closed, secret=True)
async def sign_in_methods(call: ApiCall) -> Response:
    """List the ways to sign in."""
    provider = call.node.part(UsersPart).oidc
    return ok(SignInMethods(password=True, oidc=None if provider is None else provider.name))


@post(
    f"{API}/sign-in/password", "me.sign-in-with-password", CallerView,
    access=PUBLIC, scope=closed, audit=UNRECORDED, idempotency="none", limit=SMALL_LIMIT,
    refuses=(Unauthorized, Forbidden, TooOften),
)  # fmt: skip
async def with_password(call: ApiCall, body: PasswordBody) -> Response:
    """Sign a browser in with a name and a password; after some wrong passwords, further attempts have to wait."""
    refuse_forms(call.headers)
    try:
        signed = await call.node.part(UsersPart).sign_ins.with_password(body.name, body.password, call.address)
    except HoraeError as error:
        await record_failed_sign_in(call, error, body.name)
        raise
    await call.node.tenancy.audit.note(signed.principal, call.address, call.route.name)
    reply = ok(CallerView.of(call, signed.principal))
    reply.headers = (UNCACHED, _cookie(call, signed))
    return reply


@post(
    f"{API}/me/password", "me.password",
    access=ANY_CREDENTIAL, scope=closed, audit=ACTION, status=204, idempotency="none", refuses=(Forbidden, TooOften),
)  # fmt: skip
async def change_password(call: ApiCall, body: NewPasswordBody) -> Response:
    """Change the caller's own password; the caller's other browsers are signed out."""
    keep = digest_of(cookie_of(call.headers) or "")
    await call.node.part(UsersPart).users.change_password(call.who, body.current, body.password, keep, call.address)
    return nothing()


def _provider(call: ApiCall) -> Oidc:
    found = call.node.part(UsersPart).oidc
    if found is None:
        raise NotFound("No identity provider is configured.", "Set oidc_issuer and oidc_client_id.")
    return found


@get(
    f"{API}/sign-in/oidc",
    "me.sign-in-with-oidc",
    {302: None},
    access=PUBLIC,
    scope=closed,
    refuses=(NotFound,),
    secret=True,
)
async def begin(call: ApiCall) -> Response:
    """Redirect a browser to the identity provider."""
    begun = await _provider(call).begin(call.server_url)
    return _go(begun.url, _flow(begun.state, FLOW_SECONDS, call))


@get(
    f"{API}/sign-in/oidc/callback", "me.oidc-callback", {302: None},
    access=PUBLIC, scope=closed, refuses=(NotFound, Unauthorized, Forbidden), secret=True,
)  # fmt: skip
async def finish(call: ApiCall, query: OidcCallbackQuery) -> Response:
    """Finish the sign-in of a browser that returns from the identity provider."""
    provider = _provider(call)
    try:
        begun = cookie_of(call.headers, FLOW)
        if not begun or not hmac.compare_digest(begun.encode(), query.state.encode()):
            raise Unauthorized("This sign-in was begun in another browser.", "Sign in again in this browser.")
        if query.error is not None:
            detail = f"The identity provider refused: {query.error_description or query.error}"
            raise Unauthorized(detail, "Sign in again.")
        signed = await provider.finish(query.code, query.state, call.server_url)
    except HoraeError as error:
        await record_failed_sign_in(call, error)
        return _go(f"/#problem={quote(str(error))}", _flow("", 0, call))
    await call.node.tenancy.audit.note(signed.principal, call.address, call.route.name)
    return _go("/", _flow("", 0, call), _cookie(call, signed))


def _cookie(call: ApiCall, signed: BrowserSignIn) -> tuple[bytes, bytes]:
    seconds = (signed.until - call.node.env.now()) // SECOND
    return set_cookie(signed.cookie, seconds, secure=call.secure)


def _flow(state: str, seconds: int, call: ApiCall) -> tuple[bytes, bytes]:
    return set_cookie(state, seconds, secure=call.secure, name=FLOW, path=f"{API}/sign-in")


def _go(url: str, *headers: tuple[bytes, bytes]) -> Response:
    return Response(302, b"", headers=((b"location", url.encode()), UNCACHED, *headers))
