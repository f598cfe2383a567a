"""The caller: signing in with a single-use code, signing out, and reading the credential of the request."""

from typing import Annotated

from msgspec import Meta

from horae.env import SECOND
from horae.errors import Forbidden, Unauthorized
from horae.model.base.instant import format_instant
from horae.model.base.view import Time, View
from horae.model.tenancy.principal import Principal
from horae.server.access import ANY_CREDENTIAL, PUBLIC, VIEW
from horae.server.audit_recording import record_failed_sign_in
from horae.server.auth import cookie_of, refuse_forms, set_cookie
from horae.server.call import ApiCall
from horae.server.reading.bodies import SMALL_LIMIT, RequestBody
from horae.server.reply import UNCACHED, Response, nothing, ok
from horae.server.route import ACTION, API, UNRECORDED, get, post
from horae.server.scopes import closed, unscoped


class CallerView(View, frozen=True, kw_only=True):
    """The caller's credential. A browser also gets `csrf`, the token that it must send with its writes."""

    key_id: str
    name: str
    namespace: str
    role: str
    permissions: Annotated[tuple[str, ...], Meta(description="All permissions, including those of the role.")] = ()
    queues: Annotated[tuple[str, ...], Meta(description="The queues that the credential is for; empty means all.")] = ()
    jobs: Annotated[
        tuple[str, ...], Meta(description="Patterns for the jobs that the credential is for; empty means all.")
    ] = ()
    namespaces: Annotated[tuple[str, ...], Meta(description="The namespaces that a user may choose.")] = ()
    features: Annotated[tuple[str, ...], Meta(description="The enabled features of this server.")] = ()
    csrf: str | None = None

    @classmethod
    def of(cls, call: ApiCall, who: Principal, namespaces: tuple[str, ...] = ()) -> "CallerView":
        return cls(
            key_id=who.key, name=who.name, namespace=who.namespace_name, role=who.role,
            permissions=tuple(sorted(who.permissions)), queues=who.queues, jobs=who.jobs, csrf=who.csrf,
            namespaces=namespaces, features=tuple(feature.name for feature in call.node.features),
        )  # fmt: skip


class SignInCode(View, frozen=True, kw_only=True):
    """A code with which one browser can sign in. It is shown only once."""

    code: str
    expires_at: Time


class SignInRequest(RequestBody, frozen=True, kw_only=True):
    """The single-use code of a sign-in link."""

    code: Annotated[str, Meta(min_length=1, max_length=256)]


@post(
    f"{API}/sign-in", "me.sign-in", CallerView,
    access=PUBLIC, scope=closed, audit=UNRECORDED, idempotency="none", limit=SMALL_LIMIT,
    refuses=(Unauthorized, Forbidden),
)  # fmt: skip
async def sign_in(call: ApiCall, body: SignInRequest) -> Response:
    """Exchange the code of a sign-in link for a cookie.

    The code works once, so a repeated request is refused. Writes with the cookie must carry `csrf` as the header
    X-CSRF-Token.
    """
    refuse_forms(call.headers)
    try:
        signed = await call.node.tenancy.keys.sign_in(body.code)
    except Unauthorized as error:
        await record_failed_sign_in(call, error)
        raise
    await call.node.tenancy.audit.note(signed.principal, call.address, call.route.name)
    seconds = (signed.until - call.node.env.now()) // SECOND
    reply = ok(CallerView.of(call, signed.principal))
    reply.headers = (UNCACHED, set_cookie(signed.cookie, seconds, secure=call.secure))
    return reply


@post(
    f"{API}/sign-in/codes", "me.create-sign-in-code", SignInCode,
    access=VIEW, scope=unscoped, audit=ACTION, status=201, idempotency="none",
)  # fmt: skip
async def new_code(call: ApiCall) -> Response:
    """Create a code with which one browser can sign in within ten minutes, with this credential's permissions.

    The sign-in link is the server's URL, then `/#code=` and the code. A repeated request creates another code.
    """
    made = await call.node.tenancy.keys.new_sign_in_code(call.who)
    return ok(SignInCode(code=made.text, expires_at=format_instant(made.until)), 201)


@post(
    f"{API}/sign-out",
    "me.sign-out",
    access=ANY_CREDENTIAL,
    scope=unscoped,
    audit=ACTION,
    status=204,
    idempotency="none",
)
async def sign_out(call: ApiCall) -> Response:
    """End this browser's sign-in.

    A repeated request is refused, because the first request has ended the credential.
    """
    cookie = cookie_of(call.headers)
    if cookie is not None:
        await call.node.tenancy.keys.sign_out(cookie)
    reply = nothing()
    reply.headers = (UNCACHED, set_cookie("", 0, secure=call.secure))
    return reply


@get(f"{API}/me", "me.get", CallerView, access=ANY_CREDENTIAL, scope=unscoped, secret=True)
async def get_me(call: ApiCall) -> Response:
    """Read the caller's own credential."""
    return ok(CallerView.of(call, call.who, call.node.tenancy.keys.namespaces(call.who)))
