"""Enrolments: tokens that workers exchange for their own keys."""

from typing import Annotated

from msgspec import Meta

from horae.errors import Unauthorized
from horae.model.base.duration import parse_duration
from horae.model.base.instant import format_instant
from horae.model.base.view import Time, View
from horae.model.tenancy.principal import Principal
from horae.server.access import ADMIN, PUBLIC
from horae.server.call import ApiCall
from horae.server.reading.bodies import SMALL_LIMIT, DurationText, Name, RequestBody
from horae.server.reply import UNCACHED, Response, ok
from horae.server.route import ACTION, API, UNRECORDED, post
from horae.server.routes.tenancy.keys import KeyView
from horae.server.scopes import closed


class EnrolmentBody(RequestBody, frozen=True, kw_only=True):
    """The queues of the worker that enrols, and the validity of its token."""

    queues: Annotated[
        tuple[Name, ...], Meta(max_length=100, description="The only queues that the worker may serve.")
    ] = ()
    expires_in: Annotated[DurationText, Meta(description="The validity of the token, up to 30d.")] = "1h"


class RedeemBody(RequestBody, frozen=True, kw_only=True):
    """A token to exchange for a key."""

    token: Annotated[str, Meta(min_length=1, max_length=256)]
    name: Annotated[str, Meta(max_length=100, description="The worker's name, which users see.")] = ""


class EnrolmentView(View, frozen=True, kw_only=True):
    """A token, shown once."""

    token: str
    expires_at: Time


@post(
    f"{API}/enrolments", "enrolments.create", EnrolmentView,
    access=ADMIN, scope=closed, audit=ACTION, status=201, idempotency="none",
)  # fmt: skip
async def create(call: ApiCall, body: EnrolmentBody) -> Response:
    """Create a token that one worker exchanges for its own key. A repeated request creates another token."""
    made = await call.node.fleet.enrolments.create(
        call.who, body.queues, parse_duration(body.expires_in, field="expiresIn")
    )
    reply = ok(EnrolmentView(token=made.text, expires_at=format_instant(made.until)), 201)
    reply.headers = (UNCACHED,)
    return reply


@post(
    f"{API}/enrolments/redeem", "enrolments.redeem", KeyView,
    access=PUBLIC, scope=closed, audit=UNRECORDED, status=201, idempotency="none", limit=SMALL_LIMIT,
    refuses=(Unauthorized,),
)  # fmt: skip
async def redeem(call: ApiCall, body: RedeemBody) -> Response:
    """Exchange a token for a worker's key, which is shown once.

    A token works once, so a repeated request is refused.
    """
    new = await call.node.fleet.enrolments.redeem(body.token, body.name)
    grant = new.stored.grant
    who = Principal(namespace=grant.namespace, role=grant.role, key=new.stored.id, name=new.stored.name)
    await call.node.tenancy.audit.note(who, call.address, call.route.name, f"keys/{new.stored.id}")
    return ok(KeyView.of(new.stored, grant.namespace_name, new.text), 201)
